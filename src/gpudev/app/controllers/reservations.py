"""The reservation controller: one turn brings one reservation as far as it can go now."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import structlog

from gpudev.app.controllers.execute import Executor
from gpudev.app.controllers.telling import Telling
from gpudev.domain.catalogue import Catalogue
from gpudev.domain.disk import Disk
from gpudev.domain.errors import ClusterUnavailable, NotFound, Stale, Unavailable
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.idle import NEVER, IdlePolicy
from gpudev.domain.job import Job
from gpudev.domain.lifecycle import Status
from gpudev.domain.names import ReservationId
from gpudev.domain.operations import Operation
from gpudev.domain.plans.actions import LookAgain, Record, SettleOperations, Tell
from gpudev.domain.plans.job import find_server_to_ask
from gpudev.domain.plans.observation import Observation, Plan
from gpudev.domain.plans.reservation import end_with_defect, plan_reservation
from gpudev.domain.reservation import Reservation
from gpudev.domain.server import ObservedServer
from gpudev.domain.sharing import ALIKE, SharingPolicy
from gpudev.faults import describe_error
from gpudev.ports.disks import Disks
from gpudev.ports.queue import Message, MessageQueue
from gpudev.ports.store import Claim

_FAR_FUTURE = datetime.max.replace(tzinfo=UTC)
_MAX_DEFECTS = 3
_MAX_ROUNDS = 10
_RETRY = timedelta(seconds=2)
_SILENT_RETRY = timedelta(seconds=10)
_NAP = timedelta(seconds=0.5)
_MESSAGES_AT_ONCE = 100

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


class ReservationController:
    def __init__(self, queue: MessageQueue, executor: Executor, rules: Rules, disks: Disks) -> None:
        self._queue = queue
        self._disks = disks
        self._executor = executor
        self._rules = rules
        self._reservations = executor.reservations
        self._cluster = executor.cluster
        self._clock = executor.clock
        self._telling = Telling()
        self._messages: defaultdict[ReservationId, list[Message]] = defaultdict(list)
        self._sleeps_until = _FAR_FUTURE
        self._earlier_turn_set = asyncio.Event()

    async def read_messages(self) -> tuple[ReservationId, ...]:
        """The reservations that somebody sent a message about; each message is archived with its turn."""
        keys: list[ReservationId] = []
        while True:
            messages = await self._queue.read(_MESSAGES_AT_ONCE)
            for message in messages:
                self._messages[message.reservation_id].append(message)
                keys.append(message.reservation_id)
            if len(messages) < _MESSAGES_AT_ONCE:
                # What came meanwhile has its own signal, and what was hidden by a rival is that rival's.
                return tuple(keys)

    def note_every_next_turn(self) -> None:
        """From now on until `sleep_until`, whatever time a turn sets may be earlier than what was read."""
        self._sleeps_until = _FAR_FUTURE
        self._earlier_turn_set.clear()

    async def sleep_until(self, due: datetime) -> None:
        """Sleep until then, or until a turn has set an earlier time for its next one.

        Never long without a look at the clock, which may have been set meanwhile.
        """
        self._sleeps_until = due
        while (left := due - self._clock.now()) > timedelta() and not self._earlier_turn_set.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._earlier_turn_set.wait(), min(left, _NAP).total_seconds())

    async def turn(self, reservation_id: ReservationId) -> None:
        messages = self._messages.pop(reservation_id, [])
        try:
            is_done = await self._claim_and_take_turn(reservation_id)
        except (Unavailable, Stale):
            raise
        except Exception as error:
            worn = [message.message_id for message in messages if message.tries >= _MAX_DEFECTS]
            await self._queue.bury(worn, describe_error(error))
            raise
        if messages:
            await self._settle_messages(reservation_id, messages, is_done=is_done)

    async def _settle_messages(
        self, reservation_id: ReservationId, messages: list[Message], *, is_done: bool
    ) -> None:
        """Where somebody else has it in hand, they come back; of what is not there they would for ever."""
        ids = [message.message_id for message in messages]
        if is_done:
            await self._queue.archive(ids)
            return
        try:
            await self._reservations.get(reservation_id)
        except NotFound as error:
            await self._queue.bury(ids, error.message)

    async def _claim_and_take_turn(self, reservation_id: ReservationId) -> bool:
        """False if it could not be claimed."""
        claim = await self._reservations.claim(reservation_id, self._rules.lease)
        if claim is None:
            return False
        try:
            silence = await self._take_turn(claim)
        except (Unavailable, Stale):
            await self._reservations.postpone(claim, self._clock.now() + _RETRY)
            raise
        except Exception as error:
            await self._note_defect(claim, error)
            raise
        if silence is not None:
            raise silence
        return True

    async def _take_turn(self, claim: Claim) -> ClusterUnavailable | None:
        """Rounds of observe, plan and execute, until a plan asks for nothing but patience.

        If the cluster does not answer, the turn decides what it can without it, and returns the silence.
        """
        reservation, operations = claim.reservation, claim.operations
        plan: Plan = ()
        silence: ClusterUnavailable | None = None
        job: Job | None = None
        for number in range(_MAX_ROUNDS):
            try:
                server = await self._find_server(reservation)
            except ClusterUnavailable as error:
                silence, server = error, None
            seen = await self._observe(reservation, operations, server, silence)
            if number == 0:
                job = await self._find_job(seen)
            seen = replace(seen, drains=claim.drains, job=job)
            plan = plan_reservation(seen)
            reservation = await self._carry_out(claim, reservation, plan)
            if _is_patient(plan):
                break
            operations = _without_settled(operations, plan)
        if reservation.is_ended:
            self._telling.forget(reservation.id)
        next_turn = self._next_turn(reservation, plan)
        if silence is None or next_turn is None:
            silence = None
            await self._reservations.release(claim, reservation.version, next_turn)
        else:
            # Warnings and ends have their times in the silence, too.
            next_turn = min(next_turn, self._clock.now() + _SILENT_RETRY)
            await self._reservations.postpone(claim, next_turn)
        if next_turn and next_turn < self._sleeps_until:
            self._earlier_turn_set.set()
        return silence

    async def _carry_out(self, claim: Claim, reservation: Reservation, plan: Plan) -> Reservation:
        """What comes after a notice that was not heard is not done; the next plan does without it."""
        for action in plan:
            if isinstance(action, Tell) and not await self._tell(claim, reservation, action):
                break
            if not isinstance(action, Tell):
                reservation = await self._executor.execute(claim, reservation, action)
        return reservation

    async def _tell(self, claim: Claim, reservation: Reservation, action: Tell) -> bool:
        """Whether they have heard it."""
        try:
            with self._telling.taking_a_place():
                await self._executor.execute(claim, reservation, action)
        except ClusterUnavailable as error:
            _log.warning("notice_not_told", reservation_id=reservation.id, error=error.message)
            self._telling.note_failure(reservation.id, self._clock.now())
            return False
        self._telling.forget(reservation.id)
        return True

    async def _observe(
        self,
        reservation: Reservation,
        operations: tuple[Operation, ...],
        server: ObservedServer | None,
        silence: ClusterUnavailable | None,
    ) -> Observation:
        return Observation(
            reservation=reservation,
            operations=operations,
            server=server,
            gpu_type=self._rules.catalogue.get(reservation.gpu_type),
            policy=self._rules.policy,
            now=self._clock.now(),
            cluster_answers=silence is None,
            idle_policy=self._rules.idle_policy,
            # A silent cluster says nothing about its nodes either, and where there is a server nobody asks.
            has_node=silence is not None or server is not None or self._has_node(reservation),
            disk=await self._find_disk(reservation),
            told_at=self._telling.find_next_try(reservation.id, self._clock.now()),
        )

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
        if reservation.disk_id is None or reservation.status is not Status.PREPARING:
            return None
        return await self._disks.get(reservation.disk_id)

    async def _find_server(self, reservation: Reservation) -> ObservedServer | None:
        """From the cluster's view; that a member is not there is believed only after a fresh read.

        One that is to be made anyway needs none: making it finds what is there.
        """
        server = self._cluster.snapshot().servers.get(reservation.id)
        shown = len(server.members) if server else 0
        expected = len(reservation.members)
        if shown >= expected or (server is None and reservation.status is Status.PREPARING):
            return server
        return await self._cluster.find_server(reservation.id, expected)

    def _next_turn(self, reservation: Reservation, plan: Plan) -> datetime | None:
        if reservation.is_cleaned:
            return None
        net = self._clock.now() + self._rules.policy.safety_net
        return min([net, *(action.at for action in plan if isinstance(action, LookAgain))])

    async def _note_defect(self, claim: Claim, error: Exception) -> None:
        """Try again later, but not for ever: the third defect in a row ends the reservation."""
        now = self._clock.now()
        if claim.defects + 1 < _MAX_DEFECTS or claim.reservation.is_ended:
            await self._reservations.count_defect(claim, now + _RETRY * (claim.defects + 1))
            return
        _log.error("reservation_given_up", reservation_id=claim.reservation.id)
        record = end_with_defect(claim.reservation, now)
        await self._reservations.bury(claim, record, describe_error(error))


def _without_settled(operations: tuple[Operation, ...], plan: Plan) -> tuple[Operation, ...]:
    settled = {
        outcome.operation_id
        for action in plan
        if isinstance(action, Record | SettleOperations)
        for outcome in action.outcomes
    }
    return tuple(asked for asked in operations if asked.operation_id not in settled)


def _is_patient(plan: Plan) -> bool:
    return all(isinstance(action, LookAgain) for action in plan)
