"""A slow chore beside the controllers: deletes what has been kept long enough.

It may run in any number of processes, and be killed at any point: each batch is one statement, and what was
not deleted is found again by the next.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from gpudev.faults import FAULTS, Faults
from gpudev.ports.clock import Clock
from gpudev.ports.leftovers import Leftovers

EVERY = timedelta(hours=1)
KEEP_KEYS = timedelta(days=30)
"""After their end; so long their owner sees them in the list."""
KEEP_MESSAGES = timedelta(days=7)
"""After they were archived: long enough to look into what went wrong last week."""
BATCH = 1000
"""Rows of one statement at most, so that it is short and holds few locks."""


@dataclass(frozen=True, slots=True)
class Pruning:
    leftovers: Leftovers
    clock: Clock
    faults: Faults = FAULTS

    async def __call__(self) -> None:
        """Delete all that is old enough now. What cannot be deleted does not keep the rest."""
        now = self.clock.now()
        work = (
            ("keys", self.leftovers.delete_keys, now - KEEP_KEYS),
            ("proofs", self.leftovers.delete_proofs, now),
            ("messages", self.leftovers.delete_messages, now - KEEP_MESSAGES),
        )
        for item, delete, before in work:
            await self.faults.attempt("pruning", partial(_delete_all, delete, before), item)


async def _delete_all(delete: Callable[[datetime, int], Awaitable[int]], before: datetime) -> None:
    while await delete(before, BATCH) >= BATCH:
        pass
