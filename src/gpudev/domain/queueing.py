"""Who waits for what: order, position and the reason, in words that name the real blocker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from gpudev.domain.names import ReservationId
from gpudev.domain.reasons import Reason
from gpudev.domain.reservation import Reservation


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """Where a waiting request stands. Not a change of the reservation: it bumps no version."""

    reservation_id: ReservationId
    position: int
    estimated_start_at: datetime | None
    reason: Reason
    detail: str


def in_order(waiting: Iterable[Reservation]) -> tuple[Reservation, ...]:
    """First come, first served; the id breaks ties."""
    return tuple(sorted(waiting, key=lambda reservation: (reservation.created_at, reservation.id)))


def has_moved(reservation: Reservation, place: QueuePlace) -> bool:
    stored = (
        reservation.queue_position,
        reservation.estimated_start_at,
        reservation.reason,
        reservation.detail,
    )
    return stored != (place.position, place.estimated_start_at, place.reason, place.detail)
