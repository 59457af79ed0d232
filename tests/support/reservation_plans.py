"""Situations of a reservation, and how its plan is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest

from gpudev.domain.notices import list_notices
from gpudev.domain.plans.reservation import plan_reservation
from gpudev.domain.plans.turn import (
    DeleteServer,
    Observation,
    Plan,
    Record,
)
from gpudev.domain.reservation import Reservation, clean
from gpudev.domain.server import ServerPhase
from gpudev.texts.vocabulary import Status
from tests.support.domain_values import (
    HOUR,
    MINUTE,
    NOW,
    POLICY,
    QUAD,
    make_cancel,
    make_reservation,
    make_server,
)
from tests.support.parts import change

SECOND = timedelta(seconds=1)
PHASES: list[ServerPhase | None] = [None, *ServerPhase]
KNOWN: dict[str, Any] = {"told_notices": (), "progress_at": NOW - 10 * MINUTE}
"""What an earlier turn has noted: there is nothing to tell, and the start has shown nothing new."""

MOMENTS = {
    "before its end": NOW + MINUTE,
    "in grace": NOW + HOUR + POLICY.grace / 2,
    "after grace": NOW + HOUR + POLICY.grace,
}

WORDS = "The cluster's words."

CLEANED = "cleaned"

STATES = [*Status, CLEANED]


def observe(status: str, phase: ServerPhase | None, now: datetime = NOW, **changes: Any) -> Observation:
    """A reservation in a status (or ended and cleaned away), its server in a phase, at a time."""
    if status == CLEANED:
        reservation = clean(make_reservation(status=Status.EXPIRED), NOW)
    else:
        reservation = make_reservation(status=Status(status), last_queue_update=now, **KNOWN)
    server = None if phase is None else make_server(phase=phase, detail=WORDS)
    seen = Observation(reservation, (), server, QUAD, POLICY, now)
    return replace(seen, **changes)


def situations() -> Iterator[Any]:
    for status, phase, cancels, (moment, now) in product(STATES, PHASES, (0, 2), MOMENTS.items()):
        operations = tuple(make_cancel(number) for number in range(cancels))
        name = f"{status}, {phase or 'no'} server, {cancels} cancels, {moment}"
        yield pytest.param(observe(status, phase, now, operations=operations), id=name)


SITUATIONS = list(situations())


def every_situation_in_which(holds: Callable[[Observation], bool]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("seen", [param for param in SITUATIONS if holds(param.values[0])])


def may_run(seen: Observation) -> bool:
    """Somebody may be at work on the server of a reservation that has its place."""
    has_run = seen.server is not None and seen.server.phase is not ServerPhase.UNPLACEABLE
    return has_run and seen.reservation.is_placed


def is_unfinished(seen: Observation) -> bool:
    """Something is left to do here; those that wait are driven by admission."""
    is_over = seen.reservation.is_cleaned and seen.server is None
    return not (is_over or seen.reservation.is_waiting)


def records(plan: Plan) -> list[Record]:
    return [action for action in plan if isinstance(action, Record)]


def deletions(plan: Plan) -> list[DeleteServer]:
    return [action for action in plan if isinstance(action, DeleteServer)]


def plan_for(status: str, phase: ServerPhase | None = None, now: datetime = NOW, **changes: Any) -> Plan:
    return plan_reservation(observe(status, phase, now, **changes))


def only_record(plan: Plan) -> Record:
    [record] = records(plan)
    return record


def warned(minutes: int, **changes: Any) -> Reservation:
    """Active, warned for the last time so many minutes before its end, and everybody knows."""
    reservation = make_reservation(status=Status.ACTIVE, warned_minutes=minutes, **changes)
    return change(reservation, told_notices=tuple(notice.fact for notice in list_notices(reservation)))
