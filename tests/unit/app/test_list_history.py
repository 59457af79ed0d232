"""Which lists may be read from a replica: those that can only grow older."""

from __future__ import annotations

import pytest

from gpudev.app.reservations.lookup import is_history
from gpudev.ports.reservations import ListQuery
from gpudev.texts.vocabulary import Status


@pytest.mark.parametrize(
    "statuses,expected",
    [
        pytest.param((), False, id="all"),
        pytest.param((Status.EXPIRED,), True, id="expired"),
        pytest.param((Status.EXPIRED, Status.CANCELLED, Status.FAILED), True, id="ended"),
        pytest.param((Status.EXPIRED, Status.ACTIVE), False, id="ended-and-live"),
        pytest.param((Status.QUEUED,), False, id="queued"),
    ],
)
def test_only_ended_reservations_are_history(statuses: tuple[Status, ...], *, expected: bool) -> None:
    assert is_history(ListQuery(statuses=statuses)) is expected
