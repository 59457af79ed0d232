"""The rows of all disks, for reconciliation with the storage."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from gpudev.domain.plans.reconciliation import Change, LedgerRow, Statistics
from gpudev.texts.fact import Fact


@dataclass(frozen=True, slots=True)
class StoredReconciliation:
    at: datetime
    reconciled_by: str
    statistics: Statistics
    remarks: tuple[Fact, ...]


class DiskLedger(Protocol):
    def lock(self) -> AbstractAsyncContextManager[bool]:
        """One reconciliation at a time, in all processes; False: another is at it."""
        ...

    async def list_rows(self) -> tuple[LedgerRow, ...]:
        """Every disk there ever was."""
        ...

    async def apply(self, change: Change, now: datetime) -> bool:
        """One change, all of it or nothing; False if the row moved on meanwhile.

        `Conflict` if the database's own rules forbid it, or if nobody knows the user of an import.
        """
        ...

    async def save(self, done: StoredReconciliation) -> None: ...

    async def find_last(self) -> StoredReconciliation | None: ...
