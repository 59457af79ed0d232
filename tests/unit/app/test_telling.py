"""Who is told something when: a server that does not hear is left alone, ever longer, and holds up nobody."""

from __future__ import annotations

from datetime import datetime, timedelta

from gpudev.app.controllers.reservation_executor import Telling
from gpudev.domain.names import ReservationId
from tests.support.reservations import NOON

DEAF, OTHER = ReservationId("deaf"), ReservationId("other")
SECOND = timedelta(seconds=1)


def pause_after(telling: Telling, failures: int) -> timedelta:
    now: datetime = NOON
    for _ in range(failures):
        telling.note_failure(DEAF, now)
    again = telling.find_next_try(DEAF, now)
    assert again is not None
    return again - now


def test_who_did_not_hear_is_left_alone_ever_longer_but_not_for_ever() -> None:
    assert pause_after(Telling(), 1) == 2 * SECOND
    assert pause_after(Telling(), 2) == 4 * SECOND
    assert pause_after(Telling(), 1000) == timedelta(minutes=5)


def test_the_others_are_told_meanwhile() -> None:
    telling = Telling()
    telling.note_failure(DEAF, NOON)
    assert telling.find_next_try(OTHER, NOON) is None


def test_it_is_tried_again_when_the_pause_is_over_and_begins_anew_once_it_was_heard() -> None:
    telling = Telling()
    pause_after(telling, 5)
    assert telling.find_next_try(DEAF, NOON + timedelta(minutes=5)) is None
    telling.forget(DEAF)
    assert telling.find_next_try(DEAF, NOON) is None
    assert pause_after(telling, 1) == 2 * SECOND


def test_only_a_few_are_told_at_once() -> None:
    telling = Telling()
    with (
        telling.taking_a_place(),
        telling.taking_a_place(),
        telling.taking_a_place(),
    ):
        assert telling.find_next_try(OTHER, NOON) is None
        with telling.taking_a_place():
            assert telling.find_next_try(OTHER, NOON) == NOON + SECOND
    assert telling.find_next_try(OTHER, NOON) is None
