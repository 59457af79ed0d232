"""Keep a server that only waits: until then it is not ended for being idle."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import timedelta

from gpudev.app.caller import Caller
from gpudev.domain.audit import AuditAction
from gpudev.domain.errors import Conflict, Invalid
from gpudev.domain.names import OperationId
from gpudev.domain.operations import Terms
from gpudev.domain.reservation import Reservation
from gpudev.ports.clock import Clock
from gpudev.ports.store import Operations
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say
from gpudev.texts.vocabulary import OperationKind, Status

LONGEST = timedelta(hours=48)


@dataclass(frozen=True, slots=True)
class Keep:
    """Records the wish; a controller carries it out."""

    operations: Operations
    clock: Clock

    async def __call__(
        self, caller: Caller, reservation: Reservation, hours: float, reason: str
    ) -> OperationId:
        if not 0 < hours <= LONGEST / timedelta(hours=1):
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
