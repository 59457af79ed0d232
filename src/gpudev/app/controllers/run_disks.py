"""The disk controller with the hints that wake it. Losing every hint delays and never breaks anything."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

from gpudev.app.controllers.chores import Chore, working
from gpudev.app.controllers.disks import DiskController
from gpudev.app.controllers.loop import Loop
from gpudev.app.reconcile_disks import ReconcileDisks
from gpudev.domain.disk import DiskId
from gpudev.domain.errors import StoreUnavailable
from gpudev.faults import FAULTS, Faults
from gpudev.ports.clock import Clock
from gpudev.ports.disks import Disks
from gpudev.ports.queue import Channel, Signals

SWEEP = timedelta(seconds=30)
RECONCILIATION = timedelta(minutes=5)
_RETRY = timedelta(seconds=0.2)
_DUE_AT_ONCE = 500
_TURNS_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class DiskSources:
    disks: Disks
    signals: Signals
    clock: Clock
    faults: Faults = FAULTS


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
        async with working(self._list_chores(), self._sources.faults):
            await self._turns.run()

    def _list_chores(self) -> tuple[Chore, ...]:
        chores = (
            Chore("disk_signals", self._hear_signals),
            Chore("disk_messages", self._read_messages, SWEEP.total_seconds()),
            Chore("disk_sweep", self._sweep),
        )
        if self._reconcile is None:
            return chores
        every = RECONCILIATION.total_seconds()
        return (*chores, Chore("disk_reconciliation", self._reconcile, every, begins_after=every))

    def stop(self) -> None:
        self._turns.stop()

    async def _hear_signals(self) -> None:
        async for signal in self._sources.signals.listen(Channel.MESSAGES, Channel.DISK):
            if signal is not None and signal.channel is Channel.DISK:
                self._turns.wake(DiskId(signal.payload))
                continue
            try:
                await self._read_messages()
            except StoreUnavailable:
                # The connection that brought the signal is about to break as well, and then comes None.
                await asyncio.sleep(_RETRY.total_seconds())

    async def _read_messages(self) -> None:
        for disk_id in await self._controller.read_messages():
            self._turns.wake(disk_id)

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

    async def _wake_due(self, now: datetime) -> datetime:
        for disk_id in await self._sources.disks.list_due(now, _DUE_AT_ONCE):
            self._turns.wake(disk_id)
        next_turn = await self._sources.disks.find_next_turn(after=now)
        return min(now + SWEEP, next_turn or now + SWEEP)
