"""The disk controller with the hints that wake it. Losing every hint delays and never breaks anything."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from gpudev.app.controllers.disks import DiskController
from gpudev.app.controllers.loop import Loop
from gpudev.app.reconcile_disks import ReconcileDisks
from gpudev.domain.disk import DiskId
from gpudev.domain.errors import StoreUnavailable
from gpudev.ports.clock import Clock
from gpudev.ports.disks import Disks
from gpudev.ports.queue import Channel, Signals

SWEEP = timedelta(seconds=30)
RECONCILIATION = timedelta(minutes=5)
_RETRY = timedelta(seconds=0.2)
_DUE_AT_ONCE = 500
_TURNS_AT_ONCE = 8

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class DiskSources:
    disks: Disks
    signals: Signals
    clock: Clock


class DiskControllers:
    """`reconcile` is for where no CronJob does it: then every few minutes, here."""

    def __init__(
        self, controller: DiskController, sources: DiskSources, reconcile: ReconcileDisks | None = None
    ) -> None:
        self._controller = controller
        self._reconcile = reconcile
        self._sources = sources
        self._turns = Loop("disks", controller.turn, concurrency=_TURNS_AT_ONCE)

    async def run(self) -> None:
        """Work until `stop`; turns that have begun are finished."""
        async with asyncio.TaskGroup() as group:
            sources = (self._hear_signals(), self._sweep(), self._reconcile_again_and_again())
            hints = [group.create_task(source) for source in sources]
            await asyncio.wait([group.create_task(self._turns.run())])
            for hint in hints:
                hint.cancel()

    def stop(self) -> None:
        self._turns.stop()

    async def _hear_signals(self) -> None:
        async for signal in self._sources.signals.listen(Channel.MESSAGES, Channel.DISK):
            if signal is not None and signal.channel is Channel.DISK:
                self._turns.wake(DiskId(signal.payload))
                continue
            try:
                for disk_id in await self._controller.read_messages():
                    self._turns.wake(disk_id)
            except StoreUnavailable:
                # The connection that brought the signal is about to break as well, and then comes None.
                await asyncio.sleep(_RETRY.total_seconds())

    async def _sweep(self) -> None:
        """Wake what is due, then sleep until the next one is."""
        while True:
            now = self._sources.clock.now()
            self._controller.alarm.watch()
            try:
                due = await self._wake_due(now)
            except StoreUnavailable:
                due = now + _RETRY
            await self._controller.alarm.sleep_until(due)

    async def _reconcile_again_and_again(self) -> None:
        while self._reconcile is not None:
            await asyncio.sleep(RECONCILIATION.total_seconds())
            try:
                await self._reconcile()
            except StoreUnavailable as error:
                _log.warning("disks_not_reconciled", error=error.message)

    async def _wake_due(self, now: datetime) -> datetime:
        for disk_id in await self._sources.disks.list_due(now, _DUE_AT_ONCE):
            self._turns.wake(disk_id)
        next_turn = await self._sources.disks.find_next_turn(after=now)
        return min(now + SWEEP, next_turn or now + SWEEP)
