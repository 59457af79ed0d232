"""What anybody can cause goes into the audit log without filling it: the first ones singly, then a number.

Of each user, or of each address where nobody knows the user, the first entries of a minute are written one by
one. The others are counted, and written as one entry when the minute is over. What was counted and not yet
written is lost when the process is killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain

import structlog

from gpudev.app.limits import origin_of
from gpudev.domain.audit import AuditEntry
from gpudev.domain.errors import StoreUnavailable
from gpudev.ports.audit import AuditLog
from gpudev.ports.clock import Clock
from gpudev.ports.health import Health
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say

WINDOW = timedelta(minutes=1)
SINGLY = 10
"""Entries of one kind that are written one by one, in each window."""
MAX_KINDS = 1000
"""Users, or addresses, that are told apart in a window; the others are one kind together."""
EVERY_SECONDS = 1.0
OTHERS = "(many addresses)"

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Kind:
    since: datetime
    written: int = 0
    waiting: list[AuditEntry] = field(default_factory=list)
    """Noted, and to be written one by one."""
    counted: int = 0
    last: AuditEntry | None = None


class AuditTally:
    def __init__(self, audit: AuditLog, health: Health, clock: Clock, singly: int = SINGLY) -> None:
        self._audit = audit
        self._health = health
        self._clock = clock
        self._singly = singly
        self._kinds: dict[Hashable, _Kind] = {}

    async def write(self, entry: AuditEntry) -> None:
        """Now, if it is among the first of its kind; else it is counted."""
        if self._take(entry):
            await self._audit.write(entry)

    def note(self, entry: AuditEntry) -> None:
        """The same, without waiting for the database: it is written within a second."""
        kind = self._kind_of(entry)
        if self._take(entry):
            kind.waiting.append(entry)

    async def flush(self, *, everything: bool = False) -> None:
        """Write what was noted, and the numbers of the minutes that are over."""
        now = self._clock.now()
        over = {key for key, kind in self._kinds.items() if everything or now - kind.since >= WINDOW}
        due = {key: (kind, tuple(kind.waiting)) for key, kind in self._kinds.items()}
        summaries = [_summary_of(due[key][0]) for key in over]
        entries = [*chain.from_iterable(waiting for _, waiting in due.values()), *filter(None, summaries)]
        if entries:
            # The schema may not be there yet: a process may start before it is migrated.
            await self._health.check()
            await self._audit.write(*entries)
        for key, (kind, waiting) in due.items():
            del kind.waiting[: len(waiting)]
            if key in over:
                del self._kinds[key]

    async def run(self) -> None:
        """Write until cancelled, and once more then."""
        try:
            while True:
                await asyncio.sleep(EVERY_SECONDS)
                await self._flush_if_possible()
        finally:
            await self._flush_if_possible(everything=True)

    async def _flush_if_possible(self, *, everything: bool = False) -> None:
        try:
            await self.flush(everything=everything)
        except StoreUnavailable as error:
            _log.warning("refusals_not_written", error=error.message)

    def _take(self, entry: AuditEntry) -> bool:
        """Whether it is to be written by itself; counted otherwise."""
        kind = self._kind_of(entry)
        if kind.written < self._singly:
            kind.written += 1
            return True
        kind.counted += 1
        kind.last = entry
        return False

    def _kind_of(self, entry: AuditEntry) -> _Kind:
        who = entry.username or origin_of(entry.address)
        key = (who, entry.action)
        if key not in self._kinds and len(self._kinds) >= MAX_KINDS:
            key = (OTHERS, entry.action)
        return self._kinds.setdefault(key, _Kind(self._clock.now()))


def _summary_of(kind: _Kind) -> AuditEntry | None:
    if kind.last is None:
        return None
    words = say(fact("audit_repeated", count=kind.counted, detail=kind.last.detail))
    return replace(kind.last, detail=words)


BATCH = 1000
"""Entries under one seal at most."""


@dataclass(frozen=True, slots=True)
class SealAudit:
    audit: AuditLog
    health: Health
    every_seconds: float

    async def __call__(self) -> None:
        """Seal all that has no seal yet.

        Each seal's hash goes into the log of the server as well. Kept elsewhere, it shows a chain that was
        made anew from the beginning.
        """
        while seal := await self.audit.seal(BATCH):
            _log.info("audit_sealed", number=seal.number, entries=seal.entries, hash=seal.hash.hex())
            if seal.entries < BATCH:
                return

    async def run(self) -> None:
        while True:
            try:
                # The schema may not be there yet: the API starts beside the database.
                await self.health.check()
                await self()
            except StoreUnavailable as error:
                _log.warning("audit_not_sealed", error=error.message)
            await asyncio.sleep(self.every_seconds)
