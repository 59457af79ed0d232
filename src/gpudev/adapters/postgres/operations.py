"""Actions that users requested, with their outcome."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from gpudev.adapters.postgres.audit import audit_columns
from gpudev.adapters.postgres.pool import Database
from gpudev.adapters.postgres.queries import load_queries
from gpudev.domain.audit import AuditEntry
from gpudev.domain.errors import NotFound
from gpudev.domain.names import OperationId, ReservationId, UserId
from gpudev.domain.operations import NO_TERMS, OperationOutcome, Terms
from gpudev.domain.reservation import Reservation
from gpudev.ports.reservations import StoredOperation
from gpudev.texts.fact import find_fact
from gpudev.texts.vocabulary import OperationKind, OperationStatus

_SQL = load_queries("operations")


class PostgresOperations:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def request(
        self,
        operation_id: OperationId,
        reservation: Reservation,
        kind: OperationKind,
        now: datetime,
        audit: Sequence[AuditEntry] = (),
        *,
        is_by_admin: bool = False,
        terms: Terms = NO_TERMS,
    ) -> None:
        await self._database.execute(
            *_SQL.bind(
                "request",
                id=operation_id,
                reservation_id=reservation.id,
                kind=kind,
                now=now,
                **audit_columns(audit),
                is_by_admin=is_by_admin,
                length=terms.length,
                not_before=terms.not_before,
                reason=terms.reason,
            )
        )

    async def settle(self, outcomes: Sequence[OperationOutcome], now: datetime) -> None:
        await self._database.execute(*settle(outcomes, now))

    async def get(self, operation_id: OperationId, user_id: UserId | None) -> StoredOperation:
        row = await self._database.fetch_row(*_SQL.bind("get", id=operation_id, user_id=user_id))
        if row is None:
            raise NotFound("operation_row_not_found", id=operation_id)
        return StoredOperation(
            operation_id=OperationId(str(row["operation_id"])),
            reservation_id=ReservationId(str(row["reservation_id"])),
            kind=OperationKind(row["kind"]),
            status=OperationStatus(row["status"]),
            error=find_fact(row["error"]),
            requested_at=row["requested_at"],
            finished_at=row["finished_at"],
        )


def settle(outcomes: Sequence[OperationOutcome], now: datetime) -> tuple[Any, ...]:
    """The statement that writes what became of operations."""
    return _SQL.bind(
        "settle",
        ids=[outcome.operation_id for outcome in outcomes],
        statuses=[outcome.status for outcome in outcomes],
        errors=[outcome.error for outcome in outcomes],
        at=now,
    )
