"""Where a reservation can be, and the only table of the moves it may make.

Status says where, reason (`reservation.Reason`) says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gpudev.domain.errors import IllegalMove
from gpudev.texts.vocabulary import Status

MOVES: Mapping[Status, frozenset[Status]] = MappingProxyType(
    {
        Status.PENDING: frozenset({Status.QUEUED, Status.PREPARING, Status.CANCELLED, Status.FAILED}),
        Status.QUEUED: frozenset({Status.PREPARING, Status.CANCELLED, Status.FAILED}),
        # Back to the queue when a placement did not hold; the request keeps its place there.
        Status.PREPARING: frozenset({Status.ACTIVE, Status.QUEUED, Status.CANCELLED, Status.FAILED}),
        Status.ACTIVE: frozenset({Status.EXPIRED, Status.CANCELLED, Status.FAILED}),
        Status.EXPIRED: frozenset(),
        Status.CANCELLED: frozenset(),
        Status.FAILED: frozenset(),
    }
)


def is_legal(before: Status, after: Status) -> bool:
    return after in MOVES[before]


def check_move(before: Status, after: Status) -> Status:
    if not is_legal(before, after):
        raise IllegalMove("reservation_cannot_become", before=before, after=after)
    return after
