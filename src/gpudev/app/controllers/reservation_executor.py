"""Carry out the actions of a reservation's plan: one at a time, idempotent, no decisions.

Telling people something takes a program on the dev server, and a server or a node that hangs lets it wait.
That must hold up nobody: only a few are told at once, and one that did not hear is left alone for a while,
ever longer. All of it is forgotten with the process: then it is simply tried again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

import structlog

from gpudev.domain.errors import ClusterUnavailable
from gpudev.domain.names import ReservationId
from gpudev.domain.operations import Operation, OperationOutcome
from gpudev.domain.plans.turn import (
    CreateServer,
    DeleteServer,
    DiscardPortSlot,
    DriveAdmission,
    KeepJobOutput,
    ListHome,
    LookAgain,
    Note,
    Record,
    ReservationAction,
    SettleOperations,
    Tell,
)
from gpudev.ports.admissions import Admissions
from gpudev.ports.clock import Clock
from gpudev.ports.cluster import Cluster
from gpudev.ports.disks import Disks
from gpudev.ports.reservations import Claim, JobOutputs, Operations, Reservations

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ReservationExecutor:
    reservations: Reservations
    operations: Operations
    admissions: Admissions
    cluster: Cluster
    clock: Clock
    disks: Disks | None = None
    """Where listings of homes are kept; None: nowhere."""
    job_outputs: JobOutputs | None = None

    async def execute(self, claim: Claim, action: ReservationAction) -> Claim:
        """Do it; the reservation as it is afterwards, with the operations that are still to be settled."""
        match action:
            case Record(outcomes=outcomes):
                after = await self.reservations.record(claim, action)
                return replace(claim, reservation=after, operations=_without(claim.operations, outcomes))
            case Note(noted):
                noted = replace(noted, version=claim.reservation.version)
                return replace(claim, reservation=await self.reservations.note(claim, noted))
            case LookAgain():
                pass
            case KeepJobOutput(reservation_id, output):
                if self.job_outputs is not None:
                    await self.job_outputs.keep_output(reservation_id, output)
            case SettleOperations(outcomes):
                await self.operations.settle(outcomes, self.clock.now())
                return replace(claim, operations=_without(claim.operations, outcomes))
            case DriveAdmission(gpu_type):
                await self.admissions.wake(gpu_type)
            case _:
                await self._do_on_cluster(action)
        return claim

    async def _do_on_cluster(
        self, action: CreateServer | DeleteServer | ListHome | DiscardPortSlot | Tell
    ) -> None:
        match action:
            case CreateServer(spec):
                await self.cluster.create_server(spec)
            case DeleteServer(reservation_id, uid):
                await self.cluster.delete_server(reservation_id, uid)
            case ListHome():
                await self._list_home(action)
            case DiscardPortSlot(port_slot):
                await self.cluster.discard_port_slot(port_slot)
            case Tell(reservation_id, uid, notices):
                await self.cluster.tell(reservation_id, uid, notices)
            case other:
                assert_never(other)

    async def _list_home(self, action: ListHome) -> None:
        """A server that says nothing goes all the same."""
        if self.disks is None:
            return
        try:
            listing = await self.cluster.list_home(action.reservation_id, action.uid)
        except ClusterUnavailable as error:
            _log.warning("home_not_listed", reservation_id=action.reservation_id, error=error.message)
            return
        if listing is not None:
            await self.disks.keep_home_listing(action.disk_id, listing)


def _without(
    operations: tuple[Operation, ...], outcomes: tuple[OperationOutcome, ...]
) -> tuple[Operation, ...]:
    settled = {outcome.operation_id for outcome in outcomes}
    return tuple(asked for asked in operations if asked.operation_id not in settled)


_AT_ONCE = 4
_FIRST_PAUSE = timedelta(seconds=2)
_LONGEST_PAUSE = timedelta(minutes=5)
_UNTIL_A_PLACE_IS_FREE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class _Deafness:
    failures: int
    until: datetime


class Telling:
    def __init__(self) -> None:
        self._places = _AT_ONCE
        self._deaf: dict[ReservationId, _Deafness] = {}

    def find_next_try(self, reservation_id: ReservationId, now: datetime) -> datetime | None:
        """When it may be told, if that is not now."""
        deaf = self._deaf.get(reservation_id)
        if deaf is not None and deaf.until > now:
            return deaf.until
        return None if self._places else now + _UNTIL_A_PLACE_IS_FREE

    @contextmanager
    def taking_a_place(self) -> Iterator[None]:
        self._places -= 1
        try:
            yield
        finally:
            self._places += 1

    def note_failure(self, reservation_id: ReservationId, now: datetime) -> None:
        known = self._deaf.get(reservation_id)
        failures = known.failures + 1 if known else 1
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(failures - 1, 16))
        self._deaf[reservation_id] = _Deafness(failures, now + pause)

    def forget(self, reservation_id: ReservationId) -> None:
        """It has heard, or there is nothing to tell it any more."""
        self._deaf.pop(reservation_id, None)
