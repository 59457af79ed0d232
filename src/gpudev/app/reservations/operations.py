"""Operations on a reservation: cancel it, give it more time, keep it though it is idle, stop it.

Each method checks the request and records an operation; a controller carries it out. What cannot be granted
is refused at once.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

from gpudev.app.identity.authentication import Caller
from gpudev.app.reservations.preview import Preview
from gpudev.domain.audit import AuditAction
from gpudev.domain.drain import check_stays
from gpudev.domain.errors import Conflict, Invalid, NotFound
from gpudev.domain.names import OperationId
from gpudev.domain.operations import Terms, extend, extension_of, find_allowance, stop
from gpudev.domain.reservation import Reservation
from gpudev.ports.clock import Clock
from gpudev.ports.nodes import Nodes
from gpudev.ports.reservations import Operations, StoredOperation
from gpudev.texts.fact import Fact, fact
from gpudev.texts.sentences import say
from gpudev.texts.vocabulary import OperationKind, Reason, Status

LOOK_FIRST = timedelta(seconds=3)
"""Clients of 0.3 read the old end after they have asked for a new one, and wait until it is another."""
LONGEST_KEEP = timedelta(hours=48)
_SHOWN = 60
"""How much of a text that is no id is repeated in the answer."""


@dataclass(frozen=True, slots=True)
class ExtensionRequest:
    hours: float
    idempotency_key: str = ""
    looks_first: bool = False
    """The caller is a client that must be able to see the old end once more."""


@dataclass(frozen=True, slots=True)
class Extension:
    """An extension that was accepted, and what it comes to if nothing else does before it."""

    operation_id: OperationId
    answer: Fact


@dataclass(frozen=True, slots=True)
class OperationRequests:
    operations: Operations
    clock: Clock
    preview: Preview
    nodes: Nodes
    beats_queue: bool = False
    """Whether an extension may take time that others were promised; they are told then."""

    async def cancel(self, caller: Caller, reservation: Reservation) -> OperationId:
        """End a reservation before its time. One that has ended already stays as it is."""
        operation_id = OperationId(str(uuid.uuid4()))
        entry = caller.entry(AuditAction.CANCEL, reservation.id, detail=f"Of {reservation.spec.username}.")
        await self.operations.request(
            operation_id,
            reservation,
            OperationKind.CANCEL,
            self.clock.now(),
            (entry,),
            is_by_admin=caller.user_id != reservation.spec.user_id,
        )
        return operation_id

    async def extend(self, caller: Caller, reservation: Reservation, asked: ExtensionRequest) -> Extension:
        """Give a reservation more time."""
        length = extension_of(asked.hours)
        operation_id = _choose_id(caller, reservation, asked)
        if await self._is_known(operation_id):
            return Extension(operation_id, fact("extension_known", reservation=reservation.id))
        stays_until = await self._find_stay(reservation)
        policy = self.preview.policy
        after = extend(reservation, length, policy, stays_until)
        check_stays(reservation, await self.nodes.list_drains())
        now = self.clock.now()
        entry = caller.entry(
            AuditAction.EXTEND,
            reservation.id,
            detail=say(fact("audit_extension", username=reservation.spec.username, length=length)),
        )
        terms = Terms(length, now + LOOK_FIRST if asked.looks_first else None)
        await self.operations.request(
            operation_id, reservation, OperationKind.EXTEND, now, (entry,), terms=terms
        )
        left = find_allowance(after, policy, stays_until) or timedelta()
        end = after.state.expires_at
        answer = fact("extension_requested", reservation=after.id, end=end, left=left)
        return Extension(operation_id, answer)

    async def keep(self, caller: Caller, reservation: Reservation, hours: float, reason: str) -> OperationId:
        """Do not end an active reservation for being idle, for some hours."""
        if not 0 < hours <= LONGEST_KEEP / timedelta(hours=1):
            raise Invalid("bad_keep", hours=hours, code="bad_keep")
        if reservation.state.status is not Status.ACTIVE:
            status = reservation.state.status
            raise Conflict("not_active_to_keep", reservation=reservation.id, status=status, code="not_active")
        operation_id = OperationId(str(uuid.uuid4()))
        detail = say(fact("audit_keep", username=reservation.spec.username, hours=hours, reason=reason))
        entry = caller.entry(AuditAction.KEEP, reservation.id, detail=detail)
        terms = Terms(timedelta(hours=hours), reason=reason)
        await self.operations.request(
            operation_id, reservation, OperationKind.KEEP, self.clock.now(), (entry,), terms=terms
        )
        return operation_id

    async def stop(self, caller: Caller, reservation: Reservation) -> OperationId:
        """End the server of an active reservation and keep the rest. A stopped one stays as it is."""
        now = self.clock.now()
        if reservation.state.status is not Status.STOPPED:
            stop(reservation, Reason.STOPPED_BY_USER, now)
        operation_id = OperationId(str(uuid.uuid4()))
        entry = caller.entry(AuditAction.STOP, reservation.id, detail=f"Of {reservation.spec.username}.")
        is_by_admin = caller.user_id != reservation.spec.user_id
        await self.operations.request(
            operation_id, reservation, OperationKind.STOP, now, (entry,), is_by_admin=is_by_admin
        )
        return operation_id

    async def get(self, caller: Caller, text: str) -> StoredOperation:
        """What became of an operation. What is not an id at all is not found either."""
        try:
            operation_id = OperationId(str(uuid.UUID(text)))
        except ValueError:
            raise NotFound("operation_not_found", text=text[:_SHOWN]) from None
        return await self.operations.get(operation_id, None if caller.is_admin else caller.user_id)

    async def _find_stay(self, reservation: Reservation) -> datetime | None:
        is_free = self.beats_queue or reservation.state.status is not Status.ACTIVE
        return None if is_free else await self.preview.find_stay(reservation)

    async def _is_known(self, operation_id: OperationId) -> bool:
        try:
            await self.operations.get(operation_id, None)
        except NotFound:
            return False
        return True


def _choose_id(caller: Caller, reservation: Reservation, asked: ExtensionRequest) -> OperationId:
    """With a key, the same request again is the same operation."""
    if not asked.idempotency_key:
        return OperationId(str(uuid.uuid4()))
    name = f"gpu-dev/{caller.user_id}/{asked.idempotency_key}/extend/{reservation.id}"
    return OperationId(str(uuid.uuid5(uuid.NAMESPACE_URL, name)))
