"""End a reservation before its time."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from gpudev.app.caller import Caller
from gpudev.domain.audit import AuditAction
from gpudev.domain.names import OperationId
from gpudev.domain.reservation import Reservation
from gpudev.ports.clock import Clock
from gpudev.ports.store import Operations
from gpudev.texts.vocabulary import OperationKind


@dataclass(frozen=True, slots=True)
class Cancel:
    """Records the wish; a controller carries it out. Cancelling what has ended is done at once, again."""

    operations: Operations
    clock: Clock

    async def __call__(self, caller: Caller, reservation: Reservation) -> OperationId:
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
