"""Find reservations: the one that a user means by an id, a prefix or a name, and lists of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from gpudev.app.identity.authentication import Authentication, Caller, Visitor
from gpudev.app.reservations.submission import Submitter
from gpudev.domain.audit import AuditAction
from gpudev.domain.disk import DEFAULT_DISK
from gpudev.domain.errors import Conflict, NotAllowed, NotFound
from gpudev.domain.names import MIN_PREFIX_LENGTH, ReservationId, UserId
from gpudev.domain.reservation import Reservation
from gpudev.ports.audit import AuditLog
from gpudev.ports.reservations import History, ListQuery, Mark, Marked, MarkedPage, Page, Reservations
from gpudev.ports.users import Users
from gpudev.texts.vocabulary import TERMINAL

EVERYBODY = "all"
"""Given for a username by admins."""
_SHOWN = 60
"""How much of a text that means nothing is repeated in the answer."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Only one's own are looked at, so another user's reservation is simply not found.

    An admin means one of their own as well, and anybody's if there is none; that goes into the audit log.
    """

    reservations: Reservations
    audit: AuditLog
    authentication: Authentication
    users: Users
    history: History | None = None
    """Where ended reservations may be read a moment late; None: nowhere else."""

    async def find(self, caller: Caller, text: str) -> Reservation:
        meant = text.lower()
        own = await self.reservations.list_matching(caller.user_id, _searchable(meant))
        return await self._choose(caller, meant, own)

    async def find_for_visitor(self, visitor: Visitor, text: str) -> Reservation:
        """Who is asking is found out in the same statement."""
        meant = text.lower()
        user, own = await self.reservations.list_matching_for_key(visitor.key, _searchable(meant))
        return await self._choose(self.authentication.check(visitor, user), meant, own)

    async def find_news(
        self, visitor: Visitor, reservation_id: ReservationId, known: Mark | None
    ) -> Marked | None:
        """The reservation with this very id, which can mean nothing else; None if its mark is the known one.

        This is what clients ask again and again. One that is not the visitor's own has an empty mark.
        """
        user, mark, own = await self.reservations.find_for_key(visitor.key, reservation_id, known)
        caller = self.authentication.check(visitor, user)
        if mark is not None and own is None:
            return None
        if mark is not None and own is not None:
            return Marked(mark, own)
        return Marked(Mark(b""), await self._choose(caller, reservation_id, ()))

    async def meet_submitter(self, visitor: Visitor) -> Submitter:
        """Who submits; what the choice of the home has to know is found out in the same statement."""
        user, is_taken = await self.reservations.find_submitter(visitor.key, DEFAULT_DISK)
        return Submitter(self.authentication.check(visitor, user), is_taken)

    def is_listed_by_marks(self, query: ListQuery, username: str | None) -> bool:
        """Whether `list_marks` answers it: one's own, unless a replica can answer for what is over."""
        return username is None and (self.history is None or not is_history(query))

    async def list_page(self, visitor: Visitor, query: ListQuery, username: str | None = None) -> Page:
        """Who asks is always found out from the primary: a key that was revoked is revoked at once."""
        history = self.history if is_history(query) else None
        owner = await self._choose_scope(await self.authentication.authenticate(visitor), username)
        return await (history or self.reservations).list_page(replace(query, user_id=owner))

    async def list_marks(self, visitor: Visitor, query: ListQuery) -> MarkedPage:
        """One's own, by their marks alone."""
        user, page = await self.reservations.list_marks_for_key(visitor.key, query)
        self.authentication.check(visitor, user)
        return page

    async def _choose(self, caller: Caller, meant: str, own: tuple[Reservation, ...]) -> Reservation:
        if own or not caller.is_admin or not _searchable(meant):
            return choose_meant(meant, own)
        found = choose_meant(meant, await self.reservations.list_matching_of_all(meant))
        entry = caller.entry(AuditAction.VIEW_JOB, found.id, detail=f"Of {found.spec.username}.")
        await self.audit.write(entry)
        return found

    async def _choose_scope(self, caller: Caller, username: str | None) -> UserId | None:
        """Whose reservations are listed; None stands for everybody's. Only admins see others'."""
        if username is None or username == caller.username:
            return caller.user_id
        if not caller.is_admin:
            raise NotAllowed("only_admins_see_others")
        user_id = None if username == EVERYBODY else await self._get_user_id(username)
        await self.audit.write(caller.entry(AuditAction.LIST_JOBS, username))
        return user_id

    async def _get_user_id(self, username: str) -> UserId:
        user = await self.users.find_by_name(username) if username.isprintable() else None
        if user is None:
            raise NotFound("user_not_found", username=username[:_SHOWN])
        return user.user_id


def is_history(query: ListQuery) -> bool:
    """Asks for ended reservations alone, of which none comes back to life."""
    return bool(query.statuses) and set(query.statuses) <= set(TERMINAL)


def _searchable(text: str) -> str:
    """Nothing is called by what cannot be printed, and PostgreSQL takes not all of it."""
    return text if text.isprintable() else ""


def choose_meant(text: str, candidates: Iterable[Reservation]) -> Reservation:
    """The full id, then the name of a live one, then a unique prefix, then the newest ended of that name."""
    newest_first = sorted(candidates, key=lambda candidate: candidate.spec.created_at, reverse=True)

    def matching(test: Callable[[Reservation], bool]) -> list[Reservation]:
        return [candidate for candidate in newest_first if test(candidate)]

    exact = matching(lambda candidate: candidate.id == text)
    named = matching(lambda candidate: candidate.spec.name == text and candidate.is_live)
    prefixed = matching(lambda candidate: candidate.id.startswith(text))
    ended = matching(lambda candidate: candidate.spec.name == text)
    for found in (exact, named, prefixed):
        if len(found) > 1:
            raise _ambiguous(text, found)
        if found:
            return found[0]
    if ended:
        return ended[0]
    if len(text) < MIN_PREFIX_LENGTH:
        raise NotFound("reservation_not_found_by_so_few", text=text, least=MIN_PREFIX_LENGTH)
    raise NotFound("reservation_not_found", text=text[:_SHOWN])


def _ambiguous(text: str, found: list[Reservation]) -> Conflict:
    return Conflict(
        "ambiguous_reservation",
        text=text,
        count=len(found),
        candidates=[[candidate.id, candidate.spec.name] for candidate in found],
        code="ambiguous_id",
    )
