"""The moves of a reservation as values: what each changes, what it keeps, and that illegal ones raise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpudev.domain.errors import IllegalMove
from gpudev.domain.names import NodeName
from gpudev.domain.reservation import Reservation, activate, clean, end, is_legal, place, queue
from gpudev.domain.server import Member
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import PLACED, TERMINAL, Reason, Status
from tests.support.domain_values import ADDRESS, HOST_KEYS, HOUR, NOW, make_reservation
from tests.support.words import words_of

MEMBERS = (Member(NodeName("a"), ADDRESS, HOST_KEYS),)

MOVES: dict[Status, Callable[[Reservation], Reservation]] = {
    Status.QUEUED: lambda before: queue(before, Reason.PLACEMENT_LOST, fact("words", words="words")),
    Status.PREPARING: lambda before: place(before, (NodeName("b"),), NOW),
    Status.ACTIVE: lambda before: activate(before, MEMBERS, NOW),
    Status.EXPIRED: lambda before: end(before, Status.EXPIRED, Reason.TIME_IS_UP, NOW),
    Status.CANCELLED: lambda before: end(before, Status.CANCELLED, Reason.CANCELLED_BY_USER, NOW),
    Status.FAILED: lambda before: end(before, Status.FAILED, Reason.INTERNAL_ERROR, NOW),
}
PAIRS = [(before, after) for before in Status for after in MOVES]


@pytest.mark.parametrize("before, after", PAIRS, ids=str)
def test_move_happens_exactly_if_it_is_legal_and_leaves_the_old_value_alone(
    before: Status, after: Status
) -> None:
    reservation = make_reservation(status=before)
    if is_legal(before, after):
        assert MOVES[after](reservation).state.status is after
    else:
        with pytest.raises(IllegalMove):
            MOVES[after](reservation)
    assert reservation == make_reservation(status=before)


def test_placing_gives_a_node_and_takes_the_request_out_of_the_line() -> None:
    waiting = make_reservation(status=Status.QUEUED, queue_position=1, estimated_start_at=NOW)
    placed = place(waiting, (NodeName("b"), NodeName("c")), NOW)
    assert (placed.node, placed.state.placed_at, placed.state.reason) == ("b", NOW, None)
    assert (placed.nodes, words_of(placed.state.detail)) == (("b", "c"), "Starting on b, c.")
    assert (placed.forecast.queue_position, placed.forecast.estimated_start_at) == (None, None)


def test_clock_of_a_reservation_starts_when_its_server_answers() -> None:
    active = activate(make_reservation(status=Status.PREPARING), MEMBERS, NOW)
    assert (active.state.launched_at, active.state.expires_at) == (NOW, NOW + HOUR)
    assert (active.address, active.host_keys) == (ADDRESS, HOST_KEYS)


def test_going_back_to_the_queue_gives_the_node_back_and_keeps_the_place() -> None:
    preparing = make_reservation(status=Status.PREPARING)
    queued = queue(preparing, Reason.PLACEMENT_LOST, fact("words", words="words"))
    assert (queued.node, queued.state.placed_at, queued.holds_room) == (None, None, False)
    assert queued.spec.created_at == preparing.spec.created_at


@pytest.mark.parametrize("status", sorted(PLACED))
def test_ended_reservation_keeps_its_node_until_it_is_cleaned(status: Status) -> None:
    ended = end(make_reservation(status=status), Status.CANCELLED, Reason.CANCELLED_BY_USER, NOW)
    assert ended.holds_room
    assert not clean(ended, NOW).holds_room


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_only_a_cancelled_reservation_has_a_time_of_cancelling(status: Status) -> None:
    before = make_reservation(status=Status.ACTIVE)
    ended = end(before, status, Reason.INTERNAL_ERROR, NOW)
    assert ended.state.ended_at == NOW
    assert ended.state.cancelled_at == (NOW if status is Status.CANCELLED else None)


def test_end_without_words_of_its_own_says_what_the_reason_means() -> None:
    ended = end(make_reservation(status=Status.ACTIVE), Status.EXPIRED, Reason.TIME_IS_UP, NOW)
    assert words_of(ended.state.detail) == "The reserved time is over."


@pytest.mark.parametrize("status", Status, ids=str)
def test_every_status_answers_exactly_one_of_waiting_placed_stopped_ended(status: Status) -> None:
    reservation = make_reservation(status=status)
    is_stopped = status is Status.STOPPED
    answers = [reservation.is_waiting, reservation.is_placed, is_stopped, reservation.is_ended]
    assert answers.count(True) == 1
    assert reservation.is_live is not reservation.is_ended
