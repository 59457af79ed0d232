"""What is done now and then beside the controllers, in any number of processes.

Each may be killed at any point. Sampling measures every dev server and wakes those whose idleness is news.
Notifications are sent again until they are taken, though not for ever. Pruning deletes what has been kept
long enough, one statement a batch. Verification of the audit log remembers the last seal that was in order
as the anchor of the next one, so that a log whose end is cut off is found. The number and hash of each seal
go into the log of the process as well: kept elsewhere, they are anchors that outlive it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import structlog

from gpudev.app.audit_log import Anchor, Verification, verify
from gpudev.domain.errors import Unavailable
from gpudev.domain.idle import IdlePolicy, find_idle_since, judge
from gpudev.domain.names import ReservationId
from gpudev.domain.notification import find_pause, wants
from gpudev.domain.reservation import Reservation
from gpudev.domain.server import ObservedServer, ServerPhase
from gpudev.faults import FAULTS, Faults, describe_error
from gpudev.ports.audit import AuditLog
from gpudev.ports.clock import Clock
from gpudev.ports.cluster import Cluster
from gpudev.ports.notifications import Delivery, NotDelivered, Notifications, Notifier
from gpudev.ports.reports import Sample, Usages
from gpudev.ports.reservations import Reservations
from gpudev.ports.retention import Retention
from gpudev.telemetry import AUDIT_FINDINGS, AUDIT_SEALS, AUDIT_VERIFIED_TIME
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say

_log = structlog.get_logger(__name__)

_SAMPLES_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Sampler:
    reservations: Reservations
    usages: Usages
    cluster: Cluster
    policy: IdlePolicy
    clock: Clock
    every: timedelta
    faults: Faults = FAULTS

    async def sample(self) -> tuple[Sample, ...]:
        """A time in which a server cannot be measured is one of which nothing is known."""
        servers = self.cluster.snapshot().servers
        active = await self.reservations.list_active()
        places = asyncio.Semaphore(_SAMPLES_AT_ONCE)
        running = [(row, server) for row in active if (server := _find_running(servers.get(row.id)))]
        found = await asyncio.gather(*(self._measure(row, server, places) for row, server in running))
        samples = tuple(sample for sample in found if sample is not None)
        idle = frozenset(row.id for row in active if row.activity.idle_since is not None)
        if samples and not await self.faults.attempt("usage", partial(self._keep, samples, idle)):
            # One of them cannot be kept; the others are.
            for sample in samples:
                work = partial(self._keep, (sample,), idle)
                await self.faults.attempt("usage", work, sample.reservation_id)
        return samples

    async def _measure(
        self, row: Reservation, server: ObservedServer, places: asyncio.Semaphore
    ) -> Sample | None:
        async with places:
            work = partial(self.cluster.measure, row.id, server.uid, self.clock.now())
            usage = await self.faults.attempt("sampling", work, row.id)
        if usage is None:
            return None
        verdict = judge(usage, self.policy)
        return Sample(
            row.id, usage, find_idle_since(row.activity.idle_since, usage, verdict), verdict.signals
        )

    async def _keep(self, samples: tuple[Sample, ...], idle: frozenset[ReservationId]) -> bool:
        """Those that became idle or busy are woken: the plan has another time to look at them."""
        await self.usages.add_samples(samples)
        for sample in samples:
            if (sample.idle_since is not None) != (sample.reservation_id in idle):
                await self.reservations.wake(sample.reservation_id)
        return True


def _find_running(server: ObservedServer | None) -> ObservedServer | None:
    return server if server is not None and server.phase is ServerPhase.READY else None


EVERY = timedelta(hours=1)
KEEP_KEYS = timedelta(days=30)
"""After their end; so long their owner sees them in the list."""
KEEP_MESSAGES = timedelta(days=7)
"""After they were archived: long enough to look into what went wrong last week."""
BATCH = 1000
"""Rows of one statement at most, so that it is short and holds few locks."""


@dataclass(frozen=True, slots=True)
class Pruning:
    leftovers: Retention
    clock: Clock
    faults: Faults = FAULTS

    async def prune(self) -> None:
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


_SHOWN = 10
"""Findings that are written to the log of the process; the rest is told by `gpu-dev admin audit verify`."""


class VerifyAudit:
    def __init__(self, audit: AuditLog, clock: Clock) -> None:
        self._audit = audit
        self._clock = clock
        self._anchor: Anchor | None = None

    async def verify(self) -> Verification:
        found = await verify(self._audit, self._anchor)
        AUDIT_FINDINGS.set(len(found.findings))
        AUDIT_SEALS.set(found.last.number if found.last else 0)
        AUDIT_VERIFIED_TIME.set(self._clock.now().timestamp())
        if found.findings:
            words = [finding.message for finding in found.findings[:_SHOWN]]
            _log.error("audit_not_intact", findings=len(found.findings), first=words)
        elif found.last is not None:
            self._anchor = Anchor(found.last.number, found.last.hash)
            _log.info("audit_verified", seal=found.last.number, hash=found.last.hash.hex())
        return found


_DELIVERIES_AT_ONCE = 20
_MOST_DEFECTS = 3
_HIDDEN = timedelta(minutes=1)
"""Longer than one try may take: whoever dies in the middle leaves it to the next."""


@dataclass(frozen=True, slots=True)
class SendNotifications:
    notifications: Notifications
    notifier: Notifier
    faults: Faults = FAULTS

    async def send_all(self) -> None:
        while await self.send_due():
            pass

    async def send_due(self) -> int:
        """One batch; how many there were."""
        due = await self.notifications.read(_DELIVERIES_AT_ONCE, _HIDDEN)
        await asyncio.gather(*map(self._send_in_boundary, due))
        return len(due)

    async def _send_in_boundary(self, delivery: Delivery) -> None:
        work = partial(self._send_or_bury, delivery)
        await self.faults.attempt("notifications", work, str(delivery.message_id))

    async def _send_or_bury(self, delivery: Delivery) -> None:
        """One that fails three times in a way that nobody thought of is a dead letter."""
        if not delivery.is_ours:
            await self.notifications.bury(delivery.message_id, say(fact("notification_without_topic")))
            return
        try:
            await self._send(delivery)
        except Unavailable:
            raise
        except Exception as error:
            if delivery.tries + 1 >= _MOST_DEFECTS:
                await self.notifications.bury(delivery.message_id, describe_error(error))
            raise

    async def _send(self, delivery: Delivery) -> None:
        target, notification = delivery.target, delivery.notification
        if target is None or not wants(target, notification.event, is_test=delivery.is_test):
            await self.notifications.archive([delivery.message_id])
            return
        try:
            await self.notifier.send(target, notification)
        except NotDelivered as error:
            await self._try_again(delivery, error)
        else:
            await self.notifications.archive([delivery.message_id])

    async def _try_again(self, delivery: Delivery, error: NotDelivered) -> None:
        pause = None if error.is_final else find_pause(delivery.tries + 1)
        log = _log.bind(delivery_id=delivery.notification.delivery_id, error=error.message)
        if pause is None:
            log.warning("notification_given_up", tries=delivery.tries + 1)
            await self.notifications.archive([delivery.message_id])
        else:
            log.info("notification_postponed", seconds=pause.total_seconds())
            await self.notifications.retry_after(delivery.message_id, pause)
