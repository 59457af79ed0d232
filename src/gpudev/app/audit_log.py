"""The audit log: bound what goes into it, seal it in the background, and verify its chain of seals."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain

import structlog

from gpudev.app.limits import origin_of
from gpudev.domain.audit import AuditEntry, Finding, FindingKind, Seal, check_seal, find_added
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

SEAL_BATCH = 1000
"""Entries under one seal at most."""
_SEALS_AT_ONCE = 100

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
    """Bounds what anybody can cause: the first entries are written singly, the others as a number.

    Of each user, or of each address where nobody knows the user, the first entries of a minute are written
    one by one. The others are counted, and written as one entry when the minute is over. What was counted and
    not yet written is lost when the process is killed.
    """

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


@dataclass(frozen=True, slots=True)
class AuditSealer:
    """Seals the audit log in the background, so that nobody who writes to it waits."""

    audit: AuditLog
    health: Health
    every_seconds: float

    async def seal(self) -> None:
        """Seal all that has no seal yet.

        Each seal's hash goes into the log of the server as well. Kept elsewhere, it shows a chain that was
        made anew from the beginning.
        """
        while seal := await self.audit.seal(SEAL_BATCH):
            _log.info("audit_sealed", number=seal.number, entries=seal.entries, hash=seal.hash.hex())
            if seal.entries < SEAL_BATCH:
                return

    async def run(self) -> None:
        while True:
            try:
                # The schema may not be there yet: the API starts beside the database.
                await self.health.check()
                await self.seal()
            except StoreUnavailable as error:
                _log.warning("audit_not_sealed", error=error.message)
            await asyncio.sleep(self.every_seconds)


@dataclass(frozen=True, slots=True)
class Anchor:
    """The hash of a seal, noted elsewhere at an earlier time."""

    number: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class Verification:
    """What comes of recomputing the whole chain."""

    seals: int
    sealed: int
    waiting: int
    """Entries that are too new to have a seal."""
    last: Seal | None
    findings: tuple[Finding, ...]


async def verify(audit: AuditLog, anchor: Anchor | None) -> Verification:
    """Recompute every digest and every seal, one seal at a time."""
    findings: list[Finding] = []
    previous: Seal | None = None
    anchored: Seal | None = None
    seals = sealed = 0
    while batch := await audit.list_seals(previous.number if previous else 0, _SEALS_AT_ONCE):
        for seal in batch:
            entries = await audit.list_sealed(seal.number)
            findings.extend(check_seal(seal, previous, entries))
            anchored = seal if anchor and seal.number == anchor.number else anchored
            previous, seals, sealed = seal, seals + 1, sealed + len(entries)
    if anchor is not None:
        findings.extend(_check_anchor(anchor, anchored))
    unsealed = await audit.list_unsealed()
    added = find_added(unsealed, previous)
    return Verification(seals, sealed, len(unsealed) - len(added), previous, (*findings, *added))


def _check_anchor(anchor: Anchor, seal: Seal | None) -> tuple[Finding, ...]:
    if seal is None:
        missing = fact("audit_anchor_missing", seal=anchor.number)
        return (Finding(FindingKind.MISSING, missing, seal_number=anchor.number),)
    if seal.hash != anchor.hash:
        changed = fact("audit_anchor_changed", seal=anchor.number)
        return (Finding(FindingKind.BROKEN_CHAIN, changed, seal_number=anchor.number),)
    return ()
