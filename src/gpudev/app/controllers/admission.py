"""The admission controller: one turn gives the waiting requests of one GPU type their places.

Observe, plan and record are one database transaction, under a lock that is held for one type at a time;
it calls nobody. What the cluster looks like comes from memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

import structlog

from gpudev.app.controllers.reservations import Rules
from gpudev.domain.capacity import list_shown
from gpudev.domain.drain import list_emptied, take_out
from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.plans.admission import (
    Observation,
    find_next_start,
    plan_admission,
    predict_availability,
    situation_of,
)
from gpudev.domain.plans.turn import Record, SetQueuePlaces
from gpudev.domain.policy import Shares
from gpudev.domain.queue import LEARNED_FOR
from gpudev.domain.reservation import Reservation
from gpudev.ports.admissions import Admissions, AdmissionTransaction
from gpudev.ports.clock import Clock
from gpudev.ports.cluster import Cluster
from gpudev.ports.nodes import GpuTypes

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class AdmissionController:
    admissions: Admissions
    gpu_types: GpuTypes
    cluster: Cluster
    rules: Rules
    clock: Clock
    name: str
    """Who says so, in `last_availability_updated_by`."""

    async def turn(self, gpu_type: str) -> datetime | None:
        """One pass; when the next of those who wait is to start, if that is known."""
        async with self.admissions.lock(gpu_type) as transaction:
            habits = await transaction.read_habits(self.clock.now() - LEARNED_FOR)
            rows = await transaction.read()
            given, busy = await transaction.list_port_slots(), await transaction.list_disk_busy()
            observed = self._observe(gpu_type, rows, given, busy)
            await transaction.set_nodes(observed.nodes)
            drains = await transaction.list_drains()
            seen = replace(
                observed,
                nodes=take_out(observed.nodes, drains),
                habits=habits,
                tied=await self._list_tied(transaction),
                shares=await self._read_shares(transaction),
            )
            plan = plan_admission(seen)
            await transaction.set_rooms(situation_of(seen).rooms)
            for action in plan:
                await self._record(transaction, action)
            emptied = await self._note_emptied(transaction, list_emptied(drains, gpu_type, seen.holders))
        for node in emptied:
            _log.info("node_drained", node=node, gpu_type=gpu_type)
        availability = predict_availability(seen, plan)
        await self.gpu_types.set_availability(availability, self.name, self.clock.now())
        return find_next_start(seen, plan)

    async def _note_emptied(
        self, transaction: AdmissionTransaction, nodes: tuple[NodeName, ...]
    ) -> tuple[NodeName, ...]:
        return await transaction.set_emptied(nodes, self.clock.now()) if nodes else ()

    async def _read_shares(self, transaction: AdmissionTransaction) -> Shares:
        fair = self.rules.sharing.fair_share
        used = await transaction.read_use(fair, self.clock.now()) if fair else {}
        return Shares(self.rules.sharing, used)

    async def _list_tied(self, transaction: AdmissionTransaction) -> dict[ReservationId, str]:
        """Where a disk can only be used in its zone, so can those who ask for it."""
        return dict(await transaction.list_disk_zones()) if self.rules.disks_stay else {}

    def _observe(
        self,
        gpu_type: str,
        rows: tuple[Reservation, ...],
        given: frozenset[str],
        disk_busy: frozenset[ReservationId],
    ) -> Observation:
        snapshot = self.cluster.snapshot()
        holders = tuple(row for row in rows if row.holds_room)
        return Observation(
            gpu_type=self.rules.catalogue.get(gpu_type),
            waiting=tuple(row for row in rows if row.is_waiting),
            holders=holders,
            nodes=snapshot.nodes,
            shown=list_shown(holders, snapshot.servers),
            policy=self.rules.policy,
            now=self.clock.now(),
            port_slots=tuple(slot for slot in snapshot.port_slots if slot not in given),
            disk_busy=disk_busy,
        )

    async def _record(self, transaction: AdmissionTransaction, action: Record | SetQueuePlaces) -> None:
        """A record that comes too late is dropped: whoever moved first has woken us again."""
        match action:
            case Record():
                await transaction.record(action)
            case SetQueuePlaces(places):
                await transaction.set_queue_places(places, self.clock.now())
            case other:
                assert_never(other)
