"""Who waits for what: order, position and the reason, which names the real blocker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from gpudev.domain.eta import LikelyStart
from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.reservation import Reservation
from gpudev.texts.fact import Fact
from gpudev.texts.vocabulary import Reason


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """Where a waiting request stands. Not a change of the reservation: it bumps no version."""

    reservation_id: ReservationId
    position: int
    estimated_start_at: datetime | None
    reason: Reason
    detail: Fact
    planned_nodes: tuple[NodeName, ...] = ()
    """Where room is kept for it from its start on."""
    likely: LikelyStart | None = None
    """When it will probably start; None where too little is known."""

    @property
    def likely_start(self) -> tuple[datetime, datetime] | None:
        return (self.likely.earliest, self.likely.latest) if self.likely else None


def in_order(waiting: Iterable[Reservation]) -> tuple[Reservation, ...]:
    """First come, first served; the id breaks ties."""
    return tuple(sorted(waiting, key=lambda reservation: (reservation.spec.created_at, reservation.id)))


def has_moved(reservation: Reservation, place: QueuePlace) -> bool:
    return place_of(reservation) != place_of(place)


def place_of(told: Reservation | QueuePlace) -> tuple[object, ...]:
    """What of a place is stored and shown."""
    if isinstance(told, QueuePlace):
        planned = (told.estimated_start_at, told.planned_nodes, told.likely_start)
        return (told.position, *planned, told.reason, told.detail)
    forecast, state = told.forecast, told.state
    planned = (forecast.estimated_start_at, forecast.planned_nodes, forecast.likely_start)
    return (forecast.queue_position, *planned, state.reason, state.detail)
