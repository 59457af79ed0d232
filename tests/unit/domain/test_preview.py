"""What would become of a request: the same that admission does with it, and what would start sooner."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gpudev.domain.capacity import NodeRoom
from gpudev.domain.errors import Conflict, Invalid
from gpudev.domain.names import NodeName
from gpudev.domain.operations import extend, find_allowance
from gpudev.domain.plans.promises import Situation
from gpudev.domain.preview import (
    Foresight,
    check_booking,
    check_start,
    is_sooner,
    list_shorter,
    list_smaller,
)
from gpudev.domain.queue import ANY_LENGTH, Habits, WaitRatios
from gpudev.domain.reservation import Reservation
from gpudev.domain.schedule.grid import Grid
from gpudev.texts.vocabulary import Reason, Status
from tests.support.domain_values import HOUR, MINUTE, NOW, OCTO, POLICY, QUAD, make_reservation, make_spec
from tests.support.parts import change
from tests.support.words import words_of

WISH = make_spec(QUAD.name, 4, HOUR)
HABITS = Habits({(4, 1, ANY_LENGTH): WaitRatios(0.5, 0.75, 1.0)})


def foresight(*holders: Reservation, waiting: tuple[Reservation, ...] = (), foreign: int = 0) -> Foresight:
    """One node of four GPUs."""
    rooms = (NodeRoom(NodeName("a"), 4, foreign),)
    return Foresight(Situation(QUAD, rooms, holders, POLICY, NOW), waiting, HABITS)


def holder(slots: int, ends_in: timedelta = HOUR) -> Reservation:
    return make_reservation(9, status=Status.ACTIVE, gpu_count=slots, expires_at=NOW + ends_in)


def test_what_fits_starts_now() -> None:
    assert foresight().foresee(WISH).starts_now


def test_what_does_not_is_promised_a_time_with_a_window_and_a_reason() -> None:
    seen = foresight(holder(1)).foresee(WISH)
    assert (seen.start, seen.starts_now, seen.reason) == (
        NOW + 65 * MINUTE,
        False,
        Reason.WAITING_FOR_CAPACITY,
    )
    assert words_of(seen.detail).endswith("when 00000009 ends.")
    assert seen.likely_start == (NOW + 32.5 * MINUTE, NOW + 65 * MINUTE)


def test_it_goes_behind_those_who_wait() -> None:
    waiting = make_reservation(1, gpu_count=4)
    assert foresight(holder(1), waiting=(waiting,)).foresee(WISH).start == NOW + 130 * MINUTE


def test_what_no_node_could_take_and_what_strangers_hold_has_no_time() -> None:
    assert foresight().foresee(replace(WISH, gpu_count=8)).reason is Reason.NO_NODES
    seen = foresight(foreign=1).foresee(WISH)
    assert (seen.start, seen.reason) == (None, Reason.WAITING_FOR_CAPACITY)


def test_a_booking_has_its_time_and_no_window() -> None:
    seen = foresight(holder(1)).foresee(replace(WISH, start_at=NOW + 3 * HOUR))
    assert (seen.start, seen.likely_start) == (NOW + 3 * HOUR, None)


def test_smaller_and_shorter_ones_are_listed_from_the_nearest() -> None:
    assert [wish.gpu_count for wish in list_smaller(WISH, QUAD)] == [2, 1]
    gang = make_spec(OCTO.name, 24, HOUR, node_count=3)
    assert [(wish.gpu_count, wish.node_count) for wish in list_smaller(gang, OCTO)] == [
        (16, 2),
        (8, 1),
        (4, 1),
        (2, 1),
        (1, 1),
    ]
    assert [wish.duration for wish in list_shorter(replace(WISH, duration=4 * HOUR))] == [
        2 * HOUR,
        HOUR,
        0.5 * HOUR,
    ]


def test_sooner_is_earlier_or_at_all() -> None:
    never, later, now = (
        foresight(foreign=4).foresee(WISH),
        foresight(holder(1)).foresee(WISH),
        foresight().foresee(WISH),
    )
    assert is_sooner(now, later)
    assert is_sooner(later, never)
    assert not is_sooner(never, now)
    assert not is_sooner(later, later)


class TestExtensions:
    def test_one_may_stay_until_somebody_was_promised_its_room(self) -> None:
        running = holder(2)
        waiting = make_reservation(1, gpu_count=4, start_at=NOW + 3 * HOUR)
        assert foresight(running).stays_until(running) is None
        until = foresight(running, waiting=(waiting,)).stays_until(running)
        assert until == NOW + 3 * HOUR - POLICY.grace

    def test_one_whose_room_is_wanted_at_its_end_may_stay_for_what_the_grid_leaves(self) -> None:
        running = holder(4)
        until = foresight(running, waiting=(make_reservation(1, gpu_count=4),)).stays_until(running)
        assert until == NOW + 65 * MINUTE - POLICY.grace

    def test_extension_into_promised_time_is_refused_with_the_longest_that_is_left(self) -> None:
        running = change(holder(4, HOUR), launched_at=NOW)
        assert extend(running, 2 * HOUR, POLICY, None).state.expires_at == NOW + 3 * HOUR
        assert extend(running, 2 * HOUR, POLICY, NOW + 3 * HOUR).state.expires_at == NOW + 3 * HOUR
        with pytest.raises(Conflict, match="1 hour 30 minutes at most") as refused:
            extend(running, 2 * HOUR, POLICY, NOW + 2.5 * HOUR)
        assert refused.value.hint == "For example: gpu-dev edit 00000009 --extend 1.5"
        with pytest.raises(Conflict, match="less than a minute") as refused:
            extend(running, 2 * HOUR, POLICY, NOW + HOUR)
        assert "--dry-run" in refused.value.hint

    def test_what_is_left_is_the_same_whether_asked_for_too_much_or_told_beforehand(self) -> None:
        running = change(holder(4, HOUR), launched_at=NOW)
        until = NOW + HOUR + MINUTE
        assert find_allowance(running, POLICY, until) == MINUTE
        assert find_allowance(running, POLICY, NOW + 1000 * HOUR) == find_allowance(running, POLICY)
        for length in (HOUR, 1000 * HOUR):
            with pytest.raises(Conflict, match="1 minute at most"):
                extend(running, length, POLICY, until)


class TestBookings:
    def test_a_time_is_rounded_up_to_the_grid(self) -> None:
        assert check_start(NOW + 61 * MINUTE, NOW, Grid()) == NOW + 65 * MINUTE

    @pytest.mark.parametrize(
        "start_at,code",
        [
            (NOW - MINUTE, "booking_in_the_past"),
            (NOW + timedelta(days=31), "booking_too_far"),
            (NOW.replace(tzinfo=None), "bad_start"),
        ],
    )
    def test_a_time_that_cannot_be_is_refused(self, start_at: object, code: str) -> None:
        with pytest.raises(Invalid) as refused:
            check_start(start_at, NOW, Grid())  # type: ignore[arg-type]  # all of them are moments
        assert refused.value.code == code
        assert refused.value.hint

    def test_who_would_be_late_is_refused_with_the_nearest_time(self) -> None:
        start = NOW + 0.5 * HOUR
        seen = foresight(holder(1)).foresee(replace(WISH, start_at=start))
        with pytest.raises(Conflict) as refused:
            check_booking(seen, start)
        assert refused.value.code == "no_room_then"
        assert "--at 2030-01-01T13:05Z" in refused.value.hint

    def test_what_never_starts_is_refused(self) -> None:
        with pytest.raises(Conflict, match="no time"):
            check_booking(foresight(foreign=4).foresee(WISH), NOW)

    def test_what_has_its_time_is_accepted(self) -> None:
        start = NOW + 3 * HOUR
        check_booking(foresight(holder(1)).foresee(replace(WISH, start_at=start)), start)
