"""The reservation controller: what a turn sees of a reservation, plans for it and does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from gpudev.app.controllers.reservation_executor import ReservationExecutor, Telling
from gpudev.app.turns.engine import Observed, PlanAgain
from gpudev.domain.catalogue import Catalogue
from gpudev.domain.disk import Disk
from gpudev.domain.errors import ClusterUnavailable, Unavailable
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.idle import NEVER, IdlePolicy
from gpudev.domain.job import Job
from gpudev.domain.names import ReservationId
from gpudev.domain.plans.job import find_server_to_ask
from gpudev.domain.plans.reservation import end_with_defect, plan_reservation
from gpudev.domain.plans.turn import Observation, Plan, ReservationAction, Tell
from gpudev.domain.policy import ALIKE, SharingPolicy
from gpudev.domain.reservation import Reservation
from gpudev.domain.server import ObservedServer
from gpudev.ports.disks import Disks
from gpudev.ports.reservations import Claim
from gpudev.ports.turns import Kind
from gpudev.texts.vocabulary import Status

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a controller decides by: the types there are and the settings of time."""

    catalogue: Catalogue
    policy: TimePolicy
    idle_policy: IdlePolicy = NEVER
    disks_stay: bool = False
    """A disk can only be used where it was first."""
    lease: timedelta = timedelta(seconds=30)
    """How long a reservation is left to whoever took its turn; after that he is taken for dead."""
    sharing: SharingPolicy = ALIKE


class ReservationWork:
    """What the turn engine does with reservations."""

    kind = Kind.RESERVATION

    def __init__(self, executor: ReservationExecutor, rules: Rules, disks: Disks) -> None:
        self._executor = executor
        self._rules = rules
        self._disks = disks
        self._reservations = executor.reservations
        self._cluster = executor.cluster
        self._clock = executor.clock
        self._telling = Telling()

    async def claim(self, key: str) -> Claim | None:
        return await self._reservations.claim(ReservationId(key), self._rules.lease)

    async def observe(self, claim: Claim, before: Observation | None) -> Observed[Observation]:
        """A silent cluster is no reason to wait with what can be decided without it."""
        reservation = claim.reservation
        silence: ClusterUnavailable | None = None
        server: ObservedServer | None = None
        try:
            server = await self._find_server(reservation)
        except ClusterUnavailable as error:
            silence = error
        seen = Observation(
            reservation=reservation,
            operations=claim.operations,
            server=server,
            gpu_type=self._rules.catalogue.get(reservation.spec.gpu_type),
            policy=self._rules.policy,
            now=self._clock.now(),
            cluster_answers=silence is None,
            idle_policy=self._rules.idle_policy,
            # A silent cluster says nothing about its nodes either, and where there is a server nobody asks.
            has_node=silence is not None or server is not None or self._has_node(reservation),
            disk=await self._find_disk(reservation),
            told_at=self._telling.find_next_try(reservation.id, self._clock.now()),
            drains=claim.drains,
        )
        job = before.job if before is not None else await self._find_job(seen)
        return Observed(replace(seen, job=job), silence)

    def plan(self, seen: Observation) -> Plan:
        return plan_reservation(seen)

    async def execute(self, claim: Claim, action: ReservationAction) -> Claim:
        if isinstance(action, Tell):
            return await self._tell(claim, action)
        after = await self._executor.execute(claim, action)
        if after.reservation.is_ended:
            self._telling.forget(after.reservation.id)
        return after

    async def _tell(self, claim: Claim, action: Tell) -> Claim:
        """A server that does not hear is left alone for a while."""
        reservation_id = claim.reservation.id
        try:
            with self._telling.taking_a_place():
                after = await self._executor.execute(claim, action)
        except ClusterUnavailable as error:
            _log.warning("notice_not_told", reservation_id=reservation_id, error=error.message)
            self._telling.note_failure(reservation_id, self._clock.now())
            raise PlanAgain from error
        self._telling.forget(reservation_id)
        return after

    def find_next_turn(self, claim: Claim, looks: Sequence[datetime]) -> datetime | None:
        if claim.reservation.is_cleaned:
            return None
        return min([self._clock.now() + self._rules.policy.safety_net, *looks])

    async def note_refusal(self, claim: Claim, error: Unavailable) -> datetime | None:  # noqa: ARG002 - a port
        return None

    async def give_up(self, claim: Claim, error: str, message_ids: Sequence[int]) -> bool:
        """The reservation fails; one that has ended is cleaned up all the same, however often that fails."""
        if claim.reservation.is_ended:
            return False
        record = end_with_defect(claim.reservation, self._clock.now())
        await self._reservations.bury(claim, record, error, message_ids)
        return True

    async def _find_job(self, seen: Observation) -> Job | None:
        """A server that does not answer has none."""
        server = find_server_to_ask(seen)
        if server is None:
            return None
        try:
            return await self._cluster.find_job(server.reservation_id, server.uid)
        except ClusterUnavailable as error:
            _log.warning("job_not_read", reservation_id=server.reservation_id, error=error.message)
            return None

    def _has_node(self, reservation: Reservation) -> bool:
        present = (node.name for node in self._cluster.snapshot().nodes)
        return not set(reservation.nodes).difference(present)

    async def _find_disk(self, reservation: Reservation) -> Disk | None:
        """Only for the server that is still to be made: afterwards the disk has its own controller."""
        if reservation.spec.disk_id is None or reservation.state.status is not Status.PREPARING:
            return None
        return await self._disks.get(reservation.spec.disk_id)

    async def _find_server(self, reservation: Reservation) -> ObservedServer | None:
        """From the cluster's view; that a member is not there is believed only after a fresh read.

        One that is to be made anyway needs none: making it finds what is there.
        """
        server = self._cluster.snapshot().servers.get(reservation.id)
        shown = len(server.members) if server else 0
        expected = len(reservation.location.members)
        if shown >= expected or (server is None and reservation.state.status is Status.PREPARING):
            return server
        return await self._cluster.find_server(reservation.id, expected)
