"""A slow chore beside the controllers: deletes what has been kept long enough.

It may run in any number of processes, and be killed at any point: each batch is one statement, and what was
not deleted is found again by the next.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta

import structlog

from gpudev.domain.errors import StoreUnavailable
from gpudev.ports.clock import Clock
from gpudev.ports.leftovers import Leftovers

EVERY = timedelta(hours=1)
RETRY = timedelta(minutes=1)
KEEP_KEYS = timedelta(days=30)
"""After their end; so long their owner sees them in the list."""
KEEP_MESSAGES = timedelta(days=7)
"""After they were archived: long enough to look into what went wrong last week."""
BATCH = 1000
"""Rows of one statement at most, so that it is short and holds few locks."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Pruning:
    leftovers: Leftovers
    clock: Clock

    async def __call__(self) -> None:
        """Delete all that is old enough now."""
        now = self.clock.now()
        work = (
            (self.leftovers.delete_keys, now - KEEP_KEYS),
            (self.leftovers.delete_proofs, now),
            (self.leftovers.delete_messages, now - KEEP_MESSAGES),
        )
        for delete, before in work:
            while await delete(before, BATCH) >= BATCH:
                pass

    async def run(self) -> None:
        while True:
            pause = EVERY
            try:
                await self()
            except StoreUnavailable as error:
                _log.warning("pruning_postponed", error=error.message)
                pause = RETRY
            await asyncio.sleep(pause.total_seconds())
