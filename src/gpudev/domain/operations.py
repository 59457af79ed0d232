"""What users and admins ask to be done to a reservation: recorded, then carried out by a controller."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from gpudev.domain.names import OperationId
from gpudev.texts.fact import Fact
from gpudev.texts.vocabulary import OperationKind, OperationStatus


@dataclass(frozen=True, slots=True)
class Terms:
    """What was said with the request of an operation."""

    length: timedelta | None = None
    """By how much to extend, or how long to keep."""
    not_before: datetime | None = None
    """Older clients look once more at what was before; until then nothing is changed."""
    reason: str = ""


NO_TERMS = Terms()


@dataclass(frozen=True, slots=True)
class Operation:
    """An action that a user requested and a controller carries out."""

    operation_id: OperationId
    kind: OperationKind
    requested_at: datetime
    is_by_admin: bool = False
    """Requested for the owner by somebody else."""
    terms: Terms = NO_TERMS

    def is_due(self, now: datetime) -> bool:
        return self.terms.not_before is None or now >= self.terms.not_before


@dataclass(frozen=True, slots=True)
class OperationOutcome:
    operation_id: OperationId
    status: OperationStatus
    error: Fact | None = None
