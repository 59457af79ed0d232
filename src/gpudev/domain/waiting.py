"""How long a request may wait: until it is served, until it is forgotten, until it has waited too long.

Admission renews the place of everybody in the queue every few minutes. Where it does not, something is
wrong, and the request is *driven*: admission is woken for its type, again and again. If that goes on for
minutes without effect, although whoever drives it works, the request is cancelled rather than left hanging.
Minutes in which nobody drove do not count: after a day of downtime everybody is waited for anew.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from gpudev.domain.expiry import TimePolicy
from gpudev.domain.reservation import Reservation
from gpudev.texts.vocabulary import Reason


def is_stale(reservation: Reservation, now: datetime, policy: TimePolicy) -> bool:
    return now >= becomes_stale_at(reservation, policy)


def becomes_stale_at(reservation: Reservation, policy: TimePolicy) -> datetime:
    """A change of the request, its return to the queue for example, is news of it as well."""
    known = (
        reservation.spec.created_at,
        reservation.state.last_updated,
        reservation.forecast.last_queue_update,
    )
    return max(moment for moment in known if moment is not None) + policy.stale_after


def waits_too_long_at(reservation: Reservation, policy: TimePolicy) -> datetime:
    """Counted from the time that it was promised or booked, where it has one."""
    known = (reservation.spec.created_at, reservation.spec.start_at, reservation.forecast.estimated_start_at)
    return max(moment for moment in known if moment is not None) + policy.queue_limit


def find_end_of_wait(reservation: Reservation, now: datetime, policy: TimePolicy) -> Reason | None:
    """Why the request is not waited for any longer; None while it is."""
    if now >= waits_too_long_at(reservation, policy):
        return Reason.QUEUED_TOO_LONG
    if not is_stale(reservation, now, policy) or not _is_being_driven(reservation, now, policy):
        return None
    since = reservation.memory.stale_since
    return Reason.QUEUE_STALLED if since is not None and now - since >= policy.drive_limit else None


def drive(reservation: Reservation, now: datetime, policy: TimePolicy) -> Reservation:
    """The request with the note that it is driven now, and since when without a longer break."""
    since = reservation.memory.stale_since if _is_being_driven(reservation, now, policy) else None
    memory = replace(reservation.memory, stale_since=since or now, driven_at=now)
    return replace(reservation, memory=memory)


def is_drive_due(reservation: Reservation, now: datetime, policy: TimePolicy) -> bool:
    if not is_stale(reservation, now, policy):
        return False
    last = reservation.memory.driven_at
    return last is None or not last <= now < last + policy.drive_every


def _is_being_driven(reservation: Reservation, now: datetime, policy: TimePolicy) -> bool:
    """Driven before, for the same reason, and not interrupted for more than a turn or two."""
    last = reservation.memory.driven_at
    stale_at = becomes_stale_at(reservation, policy)
    return last is not None and last >= stale_at and now - last <= 3 * policy.drive_every
