"""The table of moves: where a reservation may go from where, and that nothing leaves an end."""

from __future__ import annotations

from itertools import product

import pytest

from gpudev.domain.errors import IllegalMove
from gpudev.domain.reservation import MOVES, check_move, is_legal
from gpudev.texts.vocabulary import ENGAGED, LIVE, PLACED, TERMINAL, WAITING, Status

PAIRS = list(product(Status, Status))
LEGAL = {
    ("pending", "queued"),
    ("pending", "preparing"),
    ("pending", "cancelled"),
    ("pending", "failed"),
    ("queued", "preparing"),
    ("queued", "cancelled"),
    ("queued", "failed"),
    ("preparing", "active"),
    ("preparing", "queued"),
    ("preparing", "cancelled"),
    ("preparing", "failed"),
    ("active", "stopped"),
    ("stopped", "pending"),
    ("stopped", "expired"),
    ("stopped", "cancelled"),
    ("stopped", "failed"),
    ("active", "expired"),
    ("active", "cancelled"),
    ("active", "failed"),
}


@pytest.mark.parametrize("before, after", PAIRS, ids=lambda status: status.value)
def test_a_move_is_legal_exactly_if_the_table_says_so(before: Status, after: Status) -> None:
    assert is_legal(before, after) == ((before.value, after.value) in LEGAL)


@pytest.mark.parametrize("before, after", PAIRS, ids=lambda status: status.value)
def test_check_move_gives_the_new_state_or_refuses_with_both_names(before: Status, after: Status) -> None:
    if is_legal(before, after):
        assert check_move(before, after) is after
        return
    with pytest.raises(IllegalMove, match=f"{before} cannot become {after}"):
        check_move(before, after)


def test_every_state_is_in_the_table() -> None:
    assert set(MOVES) == set(Status)


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_nothing_leaves_a_terminal_state(status: Status) -> None:
    assert MOVES[status] == frozenset()


@pytest.mark.parametrize("status", sorted(LIVE))
def test_every_live_state_can_be_cancelled_and_can_fail(status: Status) -> None:
    assert {Status.CANCELLED, Status.FAILED} <= MOVES[status]


def test_states_fall_into_waiting_placed_stopped_and_terminal() -> None:
    assert (*WAITING, *PLACED) == ENGAGED
    assert (*ENGAGED, Status.STOPPED) == LIVE
    assert (*LIVE, *TERMINAL) == tuple(Status)


def test_every_state_can_be_reached_from_pending() -> None:
    reached = {Status.PENDING}
    while more := {after for before in reached for after in MOVES[before]} - reached:
        reached |= more
    assert reached == set(Status)
