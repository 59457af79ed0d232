"""A request goes on the fullest node that fits, and equal inputs give equal answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudev.domain.names import NodeName
from gpudev.domain.placement import choose_node
from tests.support.budgets import QUICK


@pytest.mark.parametrize(
    "free, wanted, chosen",
    [
        pytest.param({}, 1, None, id="no nodes"),
        pytest.param({"a": 1, "b": 2}, 4, None, id="room in sum, but on no one node"),
        pytest.param({"a": 8, "b": 2, "c": 4}, 2, "b", id="the fullest that fits"),
        pytest.param({"a": 8, "b": 1, "c": 4}, 2, "c", id="the fullest does not fit: the next"),
        pytest.param({"b": 4, "a": 4}, 4, "a", id="a tie goes by name"),
        pytest.param({"a": -2, "b": 0, "c": 1}, 1, "c", id="overdrawn nodes do not fit"),
    ],
)
def test_choice_of_a_node(free: dict[NodeName, int], wanted: int, chosen: str | None) -> None:
    assert choose_node(free, wanted) == chosen


@QUICK
@given(
    free=st.dictionaries(st.sampled_from("abcdef").map(NodeName), st.integers(-4, 8)),
    wanted=st.integers(1, 8),
)
def test_choice_fits_is_the_tightest_and_does_not_depend_on_order(
    free: dict[NodeName, int], wanted: int
) -> None:
    chosen = choose_node(free, wanted)
    assert chosen == choose_node(dict(reversed(free.items())), wanted)
    fitting = [room for room in free.values() if room >= wanted]
    assert (free[chosen] if chosen is not None else None) == min(fitting, default=None)
