"""The service itself: whether it works, and the messages that it gave up."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from gpudev.app.identity.authentication import Caller
from gpudev.domain.audit import AuditAction
from gpudev.domain.errors import NotFound
from gpudev.domain.readiness import Readiness, judge_readiness
from gpudev.faults import FAULTS, Faults
from gpudev.ports.audit import AuditLog
from gpudev.ports.health import Health
from gpudev.ports.queue import DeadLetter, DeadLetters, LetterId, QueueName

__all__ = ["DeadLetter", "ServiceUseCases"]

_MOST_LISTED = 1000
_ID = re.compile(f"({'|'.join(QueueName)})-([0-9]{{1,18}})")


@dataclass(frozen=True, slots=True)
class ServiceUseCases:
    health: Health
    letters: DeadLetters
    audit: AuditLog
    find_free_bytes: Callable[[], int | None]
    """Of the disk that the database is on; None where it is not on this machine."""
    fewest_free_bytes: int
    faults: Faults = FAULTS

    def check_health(self) -> Awaitable[None]:
        """`StoreUnavailable` if the database cannot be used."""
        return self.health.check()

    async def check_readiness(self) -> Readiness:
        """Whether the service is ready, and what of it is not. `StoreUnavailable` as above."""
        await self.health.check()
        beats = await self.health.list_controllers()
        free = self.find_free_bytes()
        is_full = None if free is None else free < self.fewest_free_bytes
        return judge_readiness(beats, self.faults.list_failing(), is_disk_full=is_full)

    async def list_dead_letters(self, caller: Caller) -> tuple[DeadLetter, ...]:
        """For admins: the messages that were given up, each with its error."""
        await self.audit.write(caller.entry(AuditAction.LIST_DEAD_LETTERS))
        return await self.letters.list_all(_MOST_LISTED)

    async def retry_dead_letter(self, caller: Caller, text: str) -> LetterId:
        """What failed for a reason that is gone may succeed now."""
        letter_id = _read_id(text)
        entry = caller.entry(AuditAction.RETRY_DEAD_LETTER, letter_id.text)
        if not await self.letters.retry(letter_id, entry):
            raise _not_there(text)
        return letter_id

    async def drop_dead_letter(self, caller: Caller, text: str) -> LetterId:
        letter_id = _read_id(text)
        entry = caller.entry(AuditAction.DROP_DEAD_LETTER, letter_id.text)
        if not await self.letters.drop(letter_id, entry):
            raise _not_there(text)
        return letter_id


def _read_id(text: str) -> LetterId:
    found = _ID.fullmatch(text)
    if found is None:
        raise _not_there(text)
    return LetterId(QueueName(found[1]), int(found[2]))


def _not_there(text: str) -> NotFound:
    if not text.isprintable():
        return NotFound("no_such_dead_letter")
    return NotFound("dead_letter_not_found", text=text)
