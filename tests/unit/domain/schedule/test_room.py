"""The staircase of one node: as many stretches as there are changes, and holes as long as they can be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpudev.domain.schedule.grid import FOREVER
from gpudev.domain.schedule.room import Room
from tests.support.budgets import QUICK

ORIGIN = 10


def holes(room: Room, wanted: int) -> list[tuple[int, int, int]]:
    return room.list_holes(room.origin, FOREVER, wanted)


def test_what_is_taken_and_given_back_leaves_no_trace() -> None:
    room = Room(8, ORIGIN)
    room.change(12, 15, -3)
    room.change(12, 15, 3)
    assert holes(room, 8) == [(ORIGIN, FOREVER, 8)]


def test_holes_are_as_long_as_they_can_be_and_tell_the_room_at_their_beginning() -> None:
    room = Room(8, ORIGIN)
    room.change(12, 15, -3)
    room.change(15, 18, -6)
    assert holes(room, 4) == [(ORIGIN, 15, 8), (18, FOREVER, 8)]
    assert holes(room, 6) == [(ORIGIN, 12, 8), (18, FOREVER, 8)]
    assert room.list_holes(13, 20, 5) == [(13, 15, 5), (18, 20, 8)]


def test_the_past_is_forgotten() -> None:
    room = Room(8, ORIGIN)
    room.change(12, 15, -3)
    room.forget_before(14)
    assert (room.origin, room.at(14), room.at(15)) == (14, 5, 8)


CHANGES = st.lists(st.tuples(st.integers(8, 30), st.integers(1, 12), st.integers(-3, 3)), max_size=8)


@QUICK
@given(changes=CHANGES, wanted=st.integers(0, 8))
def test_staircase_says_what_a_table_of_steps_says(changes: list[tuple[int, int, int]], wanted: int) -> None:
    room, table = Room(4, ORIGIN), dict.fromkeys(range(ORIGIN, 60), 4)
    for start, length, slots in changes:
        room.change(start, start + length, slots)
        for step in range(max(start, ORIGIN), start + length):
            table[step] += slots
    assert {step: room.at(step) for step in table} == table
    covered = {step for start, end, _ in holes(room, wanted) for step in range(start, min(end, 60))}
    assert covered == {step for step, free in table.items() if free >= wanted}
    assert room.least(ORIGIN, 40) == min(table[step] for step in range(ORIGIN, 40))
