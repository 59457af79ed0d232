"""What is left in the cluster of reservations that are over, or that nobody knows.

Everything that a reservation has made is taken away by its own turns. This finds what they could not know of:
an object whose making was interrupted, or answered too late.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from gpudev.domain.names import ReservationId

YOUNG = timedelta(minutes=1)
"""Whoever makes something may still be about to write down what it made."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something in the cluster that says it belongs to a reservation; `kind` is the backend's word."""

    kind: str
    name: str
    uid: str
    reservation_id: ReservationId
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Observation:
    found: tuple[Leftover, ...]
    unfinished: frozenset[ReservationId]
    """Those of their reservations that are not clean: their own turns see to them."""
    now: datetime


@dataclass(frozen=True, slots=True)
class RemoveLeftover:
    leftover: Leftover


def plan_orphans(seen: Observation) -> tuple[RemoveLeftover, ...]:
    return tuple(RemoveLeftover(one) for one in seen.found if is_orphan(one, seen))


def is_orphan(leftover: Leftover, seen: Observation) -> bool:
    is_old = seen.now - leftover.created_at >= YOUNG
    return is_old and leftover.reservation_id not in seen.unfinished
