"""All controllers of a process, and the hints that wake them.

Losing every hint delays and never breaks anything: what is due stands in the database, and the sweep
finds it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from gpudev.app.controllers.admission import AdmissionController
from gpudev.app.controllers.chores import Chore, working
from gpudev.app.controllers.loop import Loop
from gpudev.app.controllers.orphans import OrphanController
from gpudev.app.controllers.reservations import ReservationController
from gpudev.app.controllers.run_disks import DiskControllers
from gpudev.domain.errors import StoreUnavailable
from gpudev.domain.names import ReservationId
from gpudev.faults import FAULTS, Faults
from gpudev.ports.clock import Clock
from gpudev.ports.cluster import CapacityChanged, Cluster, ServerChanged
from gpudev.ports.queue import Channel, Signal, Signals
from gpudev.ports.store import Admissions, Reservations

SWEEP = timedelta(seconds=30)
ORPHAN_SWEEP = timedelta(seconds=60)
_RETRY = timedelta(seconds=0.2)
_DUE_AT_ONCE = 500
_TURNS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Sources:
    """Where hints come from."""

    reservations: Reservations
    admissions: Admissions
    signals: Signals
    cluster: Cluster
    clock: Clock
    gpu_types: tuple[str, ...]
    """The types on offer; of the retired ones only those with somebody waiting are looked at."""
    faults: Faults = FAULTS


class Controllers:
    def __init__(
        self,
        reservations: ReservationController,
        admission: AdmissionController,
        sources: Sources,
        disks: DiskControllers,
    ) -> None:
        self._controller = reservations
        self._disks = disks
        self._sources = sources
        self._turns = Loop("reservations", reservations.turn, concurrency=_TURNS_AT_ONCE)
        self._admission = admission
        # A pass looks at everybody who waits or runs: with thousands of them it must not be all that is done.
        self._passes = Loop("admission", self._admit, concurrency=2, rests=True)
        orphans = OrphanController(sources.reservations, sources.cluster, sources.clock)
        self._orphan_turns: Loop[str] = Loop("orphans", orphans.turn)

    async def run(self) -> None:
        """Work until `stop`; turns that have begun are finished.

        A source of hints that fails is started again; one that keeps failing shows in `/ready`.
        """
        chores = (
            Chore("signals", self._hear_signals),
            Chore("cluster_changes", self._watch_cluster),
            Chore("reservation_sweep", self._sweep_turns),
            Chore("messages", self._read_messages, SWEEP.total_seconds()),
            Chore("queue_sweep", self._wake_waiting, SWEEP.total_seconds()),
            Chore("orphan_sweep", self._wake_orphans, ORPHAN_SWEEP.total_seconds()),
        )
        loops = (self._turns, self._passes, self._orphan_turns, self._disks)
        async with working(chores, self._sources.faults):
            faults = self._sources.faults
            await asyncio.gather(*(faults.persist("turns", loop.run) for loop in loops))

    async def _admit(self, gpu_type: str) -> None:
        """Take a pass, and the next one on the very moment that somebody was promised."""
        next_start = await self._admission.turn(gpu_type)
        if next_start is not None and next_start <= (now := self._sources.clock.now()) + SWEEP:
            delay = max(0.0, (next_start - now).total_seconds())
            asyncio.get_running_loop().call_later(delay, self._passes.wake, gpu_type)

    def stop(self) -> None:
        self._turns.stop()
        self._passes.stop()
        self._disks.stop()
        self._orphan_turns.stop()

    async def _hear_signals(self) -> None:
        channels = (Channel.MESSAGES, Channel.TURN, Channel.ADMISSION)
        async for signal in self._sources.signals.listen(*channels):
            try:
                await self._dispatch(signal)
            except StoreUnavailable:
                # The connection that brought the signal is about to break as well, and then comes None.
                await asyncio.sleep(_RETRY.total_seconds())

    async def _dispatch(self, signal: Signal | None) -> None:
        if signal is None or signal.channel is Channel.MESSAGES:
            await self._read_messages()
        if signal is None:
            for gpu_type in self._sources.gpu_types:
                self._passes.wake(gpu_type)
        elif signal.channel is Channel.TURN:
            self._turns.wake(ReservationId(signal.payload))
        elif signal.channel is Channel.ADMISSION:
            self._passes.wake(signal.payload)

    async def _read_messages(self) -> None:
        for reservation_id in await self._controller.read_messages():
            self._turns.wake(reservation_id, soon=True)

    async def _watch_cluster(self) -> None:
        async for change in self._sources.cluster.changes():
            match change:
                case ServerChanged(reservation_id):
                    # Somebody may be waiting for just that, behind many whose server is still to be made.
                    self._turns.wake(reservation_id, soon=True)
                case CapacityChanged(gpu_type):
                    self._passes.wake(gpu_type)
                case other:
                    assert_never(other)

    async def _sweep_turns(self) -> None:
        """Wake what is due, then sleep until the next one is; a turn that sets an earlier one pokes."""
        while True:
            now = self._sources.clock.now()
            self._controller.note_every_next_turn()
            try:
                due = await self._wake_due(now)
            except StoreUnavailable:
                due = now + _RETRY
            await self._controller.sleep_until(due)

    async def _wake_due(self, now: datetime) -> datetime:
        for reservation_id in await self._sources.reservations.list_due(now, _DUE_AT_ONCE):
            self._turns.wake(reservation_id)
        next_turn = await self._sources.reservations.find_next_turn(after=now)
        return min(now + SWEEP, next_turn or now + SWEEP)

    async def _wake_waiting(self) -> None:
        """Keep the places of those who wait fresh, should nothing else happen."""
        for gpu_type in await self._sources.admissions.list_waiting_types():
            self._passes.wake(gpu_type)

    async def _wake_orphans(self) -> None:
        self._orphan_turns.wake("everything")
