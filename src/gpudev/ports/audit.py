"""The audit log: appended to, sealed in batches, read and verified."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from gpudev.domain.audit import AuditEntry, AuditRecord, Seal, SealedEntry


@dataclass(frozen=True, slots=True)
class AuditQuery:
    username: str | None = None
    action: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    before: int | None = None
    """Only entries with a smaller number: where the page before ended."""
    limit: int = 50


class AuditLog(Protocol):
    """Nothing here changes or removes an entry, and the database refuses it, too.

    What an action writes in its own transaction goes through the store of that action.
    """

    async def write(self, *entries: AuditEntry) -> None:
        """Append entries that belong to no transaction: what was read, and what was refused."""
        ...

    async def list_page(self, query: AuditQuery) -> tuple[AuditRecord, ...]:
        """Newest first."""
        ...

    async def seal(self, limit: int) -> Seal | None:
        """Seal the oldest entries that have no seal, at most `limit`; nobody who writes waits for it.

        None when there are none, and when another process is sealing at this moment. An entry that is
        older than what the last seal knows is left alone: it was added later.
        """
        ...

    async def list_seals(self, after: int, limit: int) -> tuple[Seal, ...]:
        """In the order of their numbers, those greater than `after`."""
        ...

    async def list_sealed(self, number: int) -> tuple[SealedEntry, ...]:
        """The digests under one seal, with the entries as they are now."""
        ...

    async def list_unsealed(self) -> tuple[AuditRecord, ...]:
        """Entries without a seal, new ones and any that were added later."""
        ...
