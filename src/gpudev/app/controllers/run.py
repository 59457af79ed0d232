"""All controllers of a process, the hints that wake them, and the removal of what belongs to no reservation.

Losing every hint delays and never breaks anything: what is due stands in the database, and the sweeps find
it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, assert_never

import structlog

from gpudev.app.controllers.admission import AdmissionController
from gpudev.app.turns.engine import SWEEP, Engine
from gpudev.app.turns.loop import Chore, Loop, working
from gpudev.domain.errors import StoreUnavailable
from gpudev.domain.plans.orphans import Observation, plan_orphans
from gpudev.faults import FAULTS, Faults
from gpudev.ports.admissions import Admissions
from gpudev.ports.clock import Clock
from gpudev.ports.cluster import CapacityChanged, Cluster, ServerChanged
from gpudev.ports.queue import Channel, Signal, Signals
from gpudev.ports.reservations import Reservations
from gpudev.ports.turns import Kind

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class OrphanController:
    reservations: Reservations
    cluster: Cluster
    clock: Clock
    faults: Faults = FAULTS

    async def turn(self, _everything: str) -> None:
        """The cluster is looked at first: whatever is in it has had its row before."""
        found = self.cluster.list_leftovers()
        owners = frozenset(one.reservation_id for one in found)
        unfinished = await self.reservations.list_unfinished(owners) if owners else frozenset()
        for action in plan_orphans(Observation(found, unfinished, self.clock.now())):
            orphan = action.leftover
            _log.warning("orphan_removed", kind=orphan.kind, name=orphan.name, owner=orphan.reservation_id)
            await self.faults.attempt("orphans", partial(self.cluster.remove_leftover, orphan), orphan.name)


ORPHAN_SWEEP = timedelta(seconds=60)
_RETRY = timedelta(seconds=0.2)

Engines = Mapping[Kind, Engine[Any, Any, Any]]


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
        engines: Engines,
        admission: AdmissionController,
        sources: Sources,
        more_chores: tuple[Chore, ...] = (),
    ) -> None:
        self._engines = engines
        self._sources = sources
        self._more_chores = more_chores
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
            Chore("queue_sweep", self._wake_waiting, SWEEP.total_seconds()),
            Chore("orphan_sweep", self._wake_orphans, ORPHAN_SWEEP.total_seconds()),
            *(chore for engine in self._engines.values() for chore in engine.list_chores()),
            *self._more_chores,
        )
        faults = self._sources.faults
        async with working(chores, faults):
            await asyncio.gather(*(faults.persist("turns", loop.run) for loop in self._list_loops()))

    def stop(self) -> None:
        for loop in self._list_loops():
            loop.stop()

    def _list_loops(self) -> tuple[Loop[str] | Engine[Any, Any, Any], ...]:
        return (*self._engines.values(), self._passes, self._orphan_turns)

    async def _admit(self, gpu_type: str) -> None:
        """Take a pass, and the next one on the very moment that somebody was promised."""
        next_start = await self._admission.turn(gpu_type)
        if next_start is not None and next_start <= (now := self._sources.clock.now()) + SWEEP:
            delay = max(0.0, (next_start - now).total_seconds())
            asyncio.get_running_loop().call_later(delay, self._passes.wake, gpu_type)

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
            for engine in self._engines.values():
                await engine.read_messages()
        if signal is None:
            for gpu_type in self._sources.gpu_types:
                self._passes.wake(gpu_type)
        elif signal.channel is Channel.TURN:
            kind, _, key = signal.payload.partition(" ")
            if kind in self._engines:  # an earlier version says it otherwise, and the sweep finds those
                self._engines[Kind(kind)].wake(key)
        elif signal.channel is Channel.ADMISSION:
            self._passes.wake(signal.payload)

    async def _watch_cluster(self) -> None:
        async for change in self._sources.cluster.changes():
            match change:
                case ServerChanged(reservation_id):
                    # Somebody may be waiting for just that, behind many whose server is still to be made.
                    self._engines[Kind.RESERVATION].wake(reservation_id, soon=True)
                case CapacityChanged(gpu_type):
                    self._passes.wake(gpu_type)
                case other:
                    assert_never(other)

    async def _wake_waiting(self) -> None:
        """Keep the places of those who wait fresh, should nothing else happen."""
        for gpu_type in await self._sources.admissions.list_waiting_types():
            self._passes.wake(gpu_type)

    async def _wake_orphans(self) -> None:
        self._orphan_turns.wake("everything")
