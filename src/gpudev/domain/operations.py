"""What users and admins ask to be done to a reservation: recorded, then carried out by a controller.

An extension is counted from the present end, also in the grace after it. All of them together may bring a
reservation to the longest length there is; only the time counts in which it is active.

A stop ends the server and keeps the reservation with the time that it has left. It can be resumed with the
same or with other GPUs, for which it waits like a new request.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from gpudev.domain.errors import Conflict, Invalid
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.names import OperationId
from gpudev.domain.reservation import Activity, Forecast, Location, Memory, Reservation, check_move
from gpudev.texts.fact import Fact, fact
from gpudev.texts.vocabulary import OperationKind, OperationStatus, Reason, Status


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


_MINUTE = timedelta(minutes=1)


def extension_of(hours: float) -> timedelta:
    """Hours as a length; what no clock can count is as much too long as any other."""
    try:
        length = timedelta(hours=hours)
    except (OverflowError, ValueError):
        length = timedelta.max if hours > 0 else timedelta()
    if length <= timedelta():
        raise Invalid("bad_extension", hours=hours, code="bad_extension")
    return length


def find_allowance(
    reservation: Reservation, policy: TimePolicy, stays_until: datetime | None = None
) -> timedelta | None:
    """The longest extension that is left; None for what is not active.

    `stays_until` is when its GPUs are promised to somebody else, if they are: the one computation behind what
    is granted, what is refused and what is said to be left.
    """
    end = reservation.state.expires_at
    longest = _find_longest(reservation, policy)
    if longest is None or end is None:
        return None
    return longest if stays_until is None else min(longest, max(timedelta(), stays_until - end))


def extend(
    reservation: Reservation, length: timedelta, policy: TimePolicy, stays_until: datetime | None = None
) -> Reservation:
    """With a later end, of which nobody has been warned yet. Refused if it is not active or too long."""
    left = find_allowance(reservation, policy, stays_until)
    if left is None or reservation.state.expires_at is None:
        status = reservation.state.status
        raise Conflict("not_active_to_extend", reservation=reservation.id, status=status, code="not_active")
    if length > left and stays_until is not None and left != _find_longest(reservation, policy):
        raise _promised(reservation, left, stays_until)
    if length > left:
        raise _too_long(reservation, left, policy)
    return replace(
        reservation,
        state=replace(reservation.state, expires_at=reservation.state.expires_at + length),
        memory=replace(reservation.memory, warned_minutes=None, extension_error=None),
    )


def _find_longest(reservation: Reservation, policy: TimePolicy) -> timedelta | None:
    """By the longest length of a reservation alone."""
    start, end = reservation.state.launched_at, reservation.state.expires_at
    if reservation.state.status is not Status.ACTIVE or start is None or end is None:
        return None
    return max(timedelta(), start + policy.longest - reservation.state.used - end)


def _promised(reservation: Reservation, left: timedelta, stays_until: datetime) -> Conflict:
    return Conflict(
        "extension_promised_to_others",
        reservation=reservation.id,
        left=left,
        until=stays_until,
        code="promised_to_others",
    )


def _too_long(reservation: Reservation, left: timedelta, policy: TimePolicy) -> Invalid:
    if left < _MINUTE:
        return Invalid(
            "reservation_is_at_its_longest",
            reservation=reservation.id,
            longest=policy.longest,
            code="extension_too_long",
        )
    return Invalid(
        "extension_too_long",
        reservation=reservation.id,
        left=left,
        longest=policy.longest,
        code="extension_too_long",
    )


@dataclass(frozen=True, slots=True)
class Size:
    """How many GPUs of which type, and on how many nodes."""

    gpu_type: str
    gpu_count: int
    node_count: int = 1


def stop(reservation: Reservation, reason: Reason, now: datetime) -> Reservation:
    """The clock stands still, and what is left of the time is what is reserved from now on.

    Its members stay until the server is gone: see `release`.
    """
    launched_at, expires_at = reservation.state.launched_at, reservation.state.expires_at
    if reservation.state.status is not Status.ACTIVE or launched_at is None or expires_at is None:
        status = reservation.state.status
        raise Conflict("not_active_to_stop", reservation=reservation.id, status=status, code="not_active")
    # A clock that was set back neither gives time nor takes it.
    stopped_at = max(now, launched_at)
    left = expires_at - stopped_at
    if left < _MINUTE:
        raise Conflict("no_time_left_to_stop", reservation=reservation.id, code="time_is_up")
    state = replace(
        reservation.state,
        status=check_move(reservation.state.status, Status.STOPPED),
        reason=reason,
        detail=fact("reservation_stopped", left=left),
        stopped_at=stopped_at,
        used=reservation.state.used + (stopped_at - launched_at),
        placed_at=None,
        launched_at=None,
        expires_at=None,
    )
    spec = replace(reservation.spec, duration=left)
    return replace(reservation, spec=spec, state=state, memory=Memory(), activity=Activity())


def release(reservation: Reservation) -> Reservation:
    """The server of a stopped reservation is gone."""
    return replace(reservation, location=Location())


def _describe(size: Size) -> Fact:
    return fact(
        "reservation_resumed", gpu_count=size.gpu_count, gpu_type=size.gpu_type, node_count=size.node_count
    )


def resume(reservation: Reservation, size: Size, now: datetime) -> Reservation:
    """Back to the queue, behind those who are there, and perhaps for other GPUs."""
    if reservation.state.status is not Status.STOPPED:
        status = reservation.state.status
        raise Conflict("not_stopped", reservation=reservation.id, status=status, code="not_stopped")
    if reservation.location.members:
        raise Conflict("still_stopping", reservation=reservation.id, code="still_stopping")
    state = replace(
        reservation.state,
        status=check_move(reservation.state.status, Status.PENDING),
        reason=None,
        detail=_describe(size),
        stopped_at=None,
    )
    spec = replace(
        reservation.spec,
        gpu_type=size.gpu_type,
        gpu_count=size.gpu_count,
        node_count=size.node_count,
        start_at=None,
        warnings=(),
        requested_at=now,
    )
    return replace(reservation, spec=spec, state=state, forecast=Forecast(), memory=Memory())
