"""The order of the queue, and when a stored place has to be written again."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from gpudev.domain.queue import QueuePlace, has_moved, in_order
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import Reason, Status
from tests.support.domain_values import HOUR, MINUTE, NOW, make_id, make_reservation


def test_first_come_first_served_whatever_the_order_of_reading() -> None:
    waiting = [make_reservation(number) for number in (1, 2, 3)]
    for read in permutations(waiting):
        assert list(in_order(read)) == waiting


def test_equal_times_go_by_id() -> None:
    second, first = make_reservation(2, created_at=NOW), make_reservation(1, created_at=NOW)
    assert in_order([second, first]) == (first, second)


def test_request_that_came_back_from_a_placement_keeps_its_place() -> None:
    returned = make_reservation(1, status=Status.QUEUED, reason=Reason.PLACEMENT_LOST)
    newer = make_reservation(2, status=Status.QUEUED)
    assert in_order([newer, returned]) == (returned, newer)


STORED = make_reservation(
    status=Status.QUEUED,
    queue_position=2,
    estimated_start_at=NOW + HOUR,
    reason=Reason.WAITING_IN_LINE,
    detail="words",
)
PLACE = QueuePlace(make_id(1), 2, NOW + HOUR, Reason.WAITING_IN_LINE, fact("words", words="words"))


def test_place_that_is_stored_already_has_not_moved() -> None:
    assert not has_moved(STORED, PLACE)


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(replace(PLACE, position=1), id="position"),
        pytest.param(replace(PLACE, estimated_start_at=NOW + HOUR + MINUTE), id="time"),
        pytest.param(replace(PLACE, estimated_start_at=None), id="no time"),
        pytest.param(replace(PLACE, reason=Reason.WAITING_FOR_CAPACITY), id="reason"),
        pytest.param(replace(PLACE, detail=fact("words", words="other words")), id="words"),
    ],
)
def test_place_that_differs_in_anything_has_moved(place: QueuePlace) -> None:
    assert has_moved(STORED, place)
