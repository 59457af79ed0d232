"""The disk controller: one turn brings one disk as far as it can go now."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from gpudev.app.controllers.alarm import Alarm
from gpudev.app.controllers.execute_disk import DiskExecutor
from gpudev.domain.disk import Disk, DiskEvent, DiskEventKind, DiskId, DiskState
from gpudev.domain.errors import NotFound, Stale, StorageRefused, Unavailable
from gpudev.domain.operations import OperationOutcome, OperationStatus
from gpudev.domain.plans.actions import LookAgain
from gpudev.domain.plans.disk_actions import RecordDisk
from gpudev.domain.plans.disk_observation import DiskObservation, DiskPlan, DiskPolicy
from gpudev.domain.plans.disks import plan_disk
from gpudev.domain.reservation import Reservation
from gpudev.faults import describe_error
from gpudev.ports.clock import Clock
from gpudev.ports.cluster import Cluster
from gpudev.ports.disks import DiskClaim, DiskMessage, DiskQueue
from gpudev.ports.store import Reservations

SAFETY_NET = timedelta(minutes=5)
"""However quiet things are, a disk on its way is looked at this often."""

_MAX_DEFECTS = 3
_MAX_ROUNDS = 12
_RETRY = timedelta(seconds=2)
_REFUSED_RETRY = timedelta(minutes=1)
_MESSAGES_AT_ONCE = 100
_AT_REST = frozenset({DiskState.AVAILABLE, DiskState.PURGED})

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a disk is seen with."""

    reservations: Reservations
    cluster: Cluster
    clock: Clock
    policy: DiskPolicy
    lease: timedelta = timedelta(seconds=60)
    """How long a disk waits for a controller that died with it in hand. Storage, which turns ask, is slow."""


class DiskController:
    def __init__(self, queue: DiskQueue, executor: DiskExecutor, surroundings: Surroundings) -> None:
        self._queue = queue
        self._executor = executor
        self._disks = executor.disks
        self._volumes = executor.volumes
        self._around = surroundings
        self._clock = surroundings.clock
        self._messages: defaultdict[DiskId, list[DiskMessage]] = defaultdict(list)
        self.alarm = Alarm(surroundings.clock)

    async def read_messages(self) -> tuple[DiskId, ...]:
        """The disks that somebody sent a message about; each message is archived with its turn."""
        keys: list[DiskId] = []
        while True:
            messages = await self._queue.read(_MESSAGES_AT_ONCE)
            for message in messages:
                self._messages[message.disk_id].append(message)
                keys.append(message.disk_id)
            if len(messages) < _MESSAGES_AT_ONCE:
                return tuple(keys)

    async def turn(self, disk_id: DiskId) -> None:
        messages = self._messages.pop(disk_id, [])
        try:
            is_done = await self._claim_and_take_turn(disk_id)
        except (Unavailable, Stale):
            raise
        except Exception as error:
            worn = [message.message_id for message in messages if message.tries >= _MAX_DEFECTS]
            await self._queue.bury(worn, describe_error(error))
            raise
        if messages:
            await self._settle_messages(disk_id, messages, is_done=is_done)

    async def _settle_messages(self, disk_id: DiskId, messages: list[DiskMessage], *, is_done: bool) -> None:
        """Where somebody else has it in hand, they come back; of what is not there they would for ever."""
        ids = [message.message_id for message in messages]
        if is_done:
            await self._queue.archive(ids)
            return
        try:
            await self._disks.get(disk_id)
        except NotFound as error:
            await self._queue.bury(ids, error.message)

    async def _claim_and_take_turn(self, disk_id: DiskId) -> bool:
        """False if it could not be claimed."""
        claim = await self._disks.claim(disk_id, self._around.lease)
        if claim is None:
            return False
        try:
            await self._take_turn(claim)
        except StorageRefused as refused:
            await self._note_refusal(claim, refused)
        except (Unavailable, Stale):
            await self._disks.postpone(claim, self._clock.now() + _RETRY)
            raise
        except Exception as error:
            await self._note_defect(claim, error)
            raise
        return True

    async def _take_turn(self, claim: DiskClaim) -> None:
        """Rounds of observe, plan and execute, until a plan asks for nothing but patience."""
        disk = claim.disk
        plan: DiskPlan = ()
        for _ in range(_MAX_ROUNDS):
            seen = await self._observe(claim, disk)
            plan = plan_disk(seen)
            for action in plan:
                disk = await self._executor.execute(claim, disk, action)
                if isinstance(action, RecordDisk) and action.outcomes:
                    claim = replace(claim, operations=())
            if all(isinstance(action, LookAgain) for action in plan):
                break
        next_turn = self._next_turn(disk, plan)
        await self._disks.release(claim, disk.version, next_turn)
        self.alarm.set(next_turn)

    async def _observe(self, claim: DiskClaim, disk: Disk) -> DiskObservation:
        holder = await self._find_holder(disk)
        return DiskObservation(
            disk=disk,
            holdings=await self._volumes.find(disk.id, disk.volume_id),
            now=self._clock.now(),
            operations=claim.operations,
            holder=holder,
            has_server=await self._has_server(holder),
            zone=self._zone_of(holder),
            wanted_snapshots=claim.wanted_snapshots,
            policy=self._around.policy,
        )

    async def _find_holder(self, disk: Disk) -> Reservation | None:
        if disk.reservation_id is None:
            return None
        return await self._around.reservations.get(disk.reservation_id)

    async def _has_server(self, holder: Reservation | None) -> bool:
        """Read fresh: that a server is gone is believed only if the cluster says so now."""
        if holder is None:
            return False
        return await self._around.cluster.find_server(holder.id, holder.node_count) is not None

    def _zone_of(self, holder: Reservation | None) -> str:
        nodes = self._around.cluster.snapshot().nodes
        return next((node.zone for node in nodes if holder and node.name == holder.node), "")

    def _next_turn(self, disk: Disk, plan: DiskPlan) -> datetime | None:
        looks = [action.at for action in plan if isinstance(action, LookAgain)]
        if disk.state in _AT_REST and not looks:
            return None
        if disk.state is DiskState.SOFT_DELETED and looks:
            return min(looks)
        return min([self._clock.now() + SAFETY_NET, *looks])

    async def _note_refusal(self, claim: DiskClaim, refused: StorageRefused) -> None:
        """The storage will not: the owner and an operator are told, once, and it is tried again."""
        now = self._clock.now()
        disk = await self._disks.get(claim.disk.id)
        problem = f"{refused.message} Operator: {refused.hint}"
        if disk.problem != problem:
            _log.error("storage_refused", disk_id=disk.id, problem=problem)
            event = DiskEvent(DiskEventKind.PROBLEM, problem, now)
            await self._disks.record(claim, RecordDisk(disk, replace(disk, problem=problem), now, event))
        await self._disks.postpone(claim, now + _REFUSED_RETRY)

    async def _note_defect(self, claim: DiskClaim, error: Exception) -> None:
        """Try again later; the third defect in a row ends the operations, and leaves the disk as it is."""
        now = self._clock.now()
        if claim.defects + 1 < _MAX_DEFECTS or not claim.operations:
            await self._disks.count_defect(claim, now + _RETRY * (claim.defects + 1))
            return
        _log.error("disk_operations_given_up", disk_id=claim.disk.id)
        disk = await self._disks.get(claim.disk.id)
        words = "An error of gpu-dev itself. Nothing was deleted. Operator: look into the controller's log."
        outcomes = tuple(
            OperationOutcome(asked.operation_id, OperationStatus.FAILED, words) for asked in claim.operations
        )
        event = DiskEvent(DiskEventKind.PROBLEM, words, now)
        record = RecordDisk(disk, replace(disk, problem=words), now, event, outcomes)
        await self._disks.bury(claim, record, describe_error(error))
