"""A page of reservations: one's own, or, for admins, another user's or everybody's."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpudev.app.admit import Admit, Visitor
from gpudev.app.jobs_of import JobsOf
from gpudev.ports.store import History, ListQuery, MarkedPage, Page, Reservations
from gpudev.texts.vocabulary import TERMINAL


@dataclass(frozen=True, slots=True)
class ListJobs:
    reservations: Reservations
    admit: Admit
    jobs_of: JobsOf
    history: History | None = None
    """Where ended reservations may be read a moment late; None: nowhere else."""

    def is_marked(self, query: ListQuery, username: str | None) -> bool:
        """Whether the list is read by marks: one's own, unless a replica can answer for what is over."""
        return username is None and (self.history is None or not is_history(query))

    async def __call__(self, visitor: Visitor, query: ListQuery, username: str | None = None) -> Page:
        """Who asks is always found out from the primary: a key that was revoked is revoked at once."""
        history = self.history if is_history(query) else None
        owner = await self.jobs_of(await self.admit(visitor), username)
        return await (history or self.reservations).list_page(replace(query, user_id=owner))

    async def marks(self, visitor: Visitor, query: ListQuery) -> MarkedPage:
        """One's own, by their marks alone."""
        user, page = await self.reservations.list_marks_for_key(visitor.key, query)
        self.admit.check(visitor, user)
        return page


def is_history(query: ListQuery) -> bool:
    """Asks for ended reservations alone, of which none comes back to life."""
    return bool(query.statuses) and set(query.statuses) <= set(TERMINAL)
