"""What is left over goes, and what is somebody's, or may be about to be, stays."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gpudev.domain.plans.orphans import Leftover, Observation, plan_orphans
from tests.support.domain_values import NOW, make_id


def left(number: int = 1, age: timedelta = timedelta(minutes=1)) -> Leftover:
    return Leftover("pods", f"gpu-dev-{number}", f"uid-{number}", make_id(number), NOW - age)


@pytest.mark.parametrize(
    "age, unfinished, goes",
    [
        pytest.param(timedelta(minutes=1), frozenset(), True, id="of an ended or unknown reservation"),
        pytest.param(timedelta(seconds=59), frozenset(), False, id="too young to tell"),
        pytest.param(timedelta(hours=9), frozenset({make_id(1)}), False, id="of one that is not clean"),
        pytest.param(timedelta(hours=9), frozenset({make_id(2)}), True, id="of another than the live one"),
    ],
)
def test_an_orphan_is_old_and_belongs_to_nothing_unfinished(
    age: timedelta, unfinished: frozenset[str], *, goes: bool
) -> None:
    found = left(age=age)
    plan = plan_orphans(Observation((found,), unfinished, NOW))
    assert [action.leftover for action in plan] == ([found] if goes else [])
