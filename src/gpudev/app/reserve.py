"""Ask for a dev server."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from gpudev.domain.access import check_public_keys
from gpudev.domain.catalogue import Catalogue
from gpudev.domain.errors import Conflict, NotFound
from gpudev.domain.expiry import check_duration
from gpudev.domain.names import (
    ReservationId,
    check_environment,
    check_reservation_name,
    default_reservation_name,
)
from gpudev.domain.reservation import Event, EventKind, Reservation
from gpudev.ports.clock import Clock
from gpudev.ports.store import Reservations, User

_TRIES = 5


@dataclass(frozen=True, slots=True)
class ReserveRequest:
    gpu_type: str
    gpu_count: int
    duration: timedelta
    name: str | None = None
    env_vars: Mapping[str, str] = field(default_factory=dict)
    ssh_public_keys: tuple[str, ...] = ()
    client_version: str = ""


@dataclass(frozen=True, slots=True)
class Reserve:
    reservations: Reservations
    catalogue: Catalogue
    clock: Clock

    async def __call__(self, user: User, request: ReserveRequest, idempotency_key: str = "") -> Reservation:
        """Write the reservation. The same idempotency key again gives the same reservation."""
        for reservation_id in _ids(user, idempotency_key):
            reservation = self._make(user, request, reservation_id)
            event = Event(EventKind.SUBMITTED, reservation.detail, reservation.created_at)
            try:
                await self.reservations.submit(reservation, event)
            except Conflict as conflict:
                earlier = await self._find_earlier(reservation)
                if earlier is None and conflict.code != "id_taken":
                    raise
                if earlier is not None:
                    return _same_request(earlier, reservation)
            else:
                return reservation
        raise Conflict("No free reservation id was found.", hint="Ask again.", code="id_taken")

    def _make(self, user: User, request: ReserveRequest, reservation_id: ReservationId) -> Reservation:
        gpu_type = self.catalogue.get(request.gpu_type)
        gpu_count = gpu_type.check_count(request.gpu_count)
        name = request.name or default_reservation_name(gpu_type.name, reservation_id)
        return Reservation(
            id=reservation_id,
            user_id=user.user_id,
            username=user.username,
            name=check_reservation_name(name),
            gpu_type=gpu_type.name,
            gpu_count=gpu_count,
            duration=check_duration(request.duration),
            created_at=self.clock.now(),
            detail=f"Asked for {gpu_count} {gpu_type.name} GPU{'' if gpu_count == 1 else 's'}.",
            env_vars=check_environment(request.env_vars),
            ssh_public_keys=check_public_keys(request.ssh_public_keys),
            client_version=request.client_version,
        )

    async def _find_earlier(self, reservation: Reservation) -> Reservation | None:
        """The reservation that an earlier try with this very id made, if it is the same user's."""
        try:
            earlier = await self.reservations.get(reservation.id)
        except NotFound:
            return None
        return earlier if earlier.user_id == reservation.user_id else None


def _ids(user: User, idempotency_key: str) -> Iterator[ReservationId]:
    """Ids to try in turn: the first 8 characters of one may be in use already.

    With an idempotency key they follow from user and key, so a repeat meets its own earlier reservation.
    """
    for attempt in range(_TRIES):
        if idempotency_key:
            name = f"gpu-dev/{user.user_id}/{idempotency_key}/{attempt}"
            yield ReservationId(str(uuid.uuid5(uuid.NAMESPACE_URL, name)))
        else:
            yield ReservationId(str(uuid.uuid4()))


def _same_request(earlier: Reservation, repeated: Reservation) -> Reservation:
    def asked_for(reservation: Reservation) -> tuple[object, ...]:
        return (
            reservation.name,
            reservation.gpu_type,
            reservation.gpu_count,
            reservation.duration,
            dict(reservation.env_vars),
            reservation.ssh_public_keys,
        )

    if asked_for(earlier) != asked_for(repeated):
        raise Conflict(
            "This Idempotency-Key was used for another request.",
            hint="Use a fresh key for each request.",
            code="idempotency_key_reused",
        )
    return earlier
