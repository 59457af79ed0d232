"""A request goes on the fullest nodes that fit, all or none, and equal inputs give equal answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudev.domain.names import NodeName
from gpudev.domain.placement import choose_nodes, choose_port_slot
from tests.support.budgets import QUICK
from tests.support.domain_values import make_id


@pytest.mark.parametrize(
    "free, wanted, chosen",
    [
        pytest.param({}, 1, (), id="no nodes"),
        pytest.param({"a": 1, "b": 2}, 4, (), id="room in sum, but on no one node"),
        pytest.param({"a": 8, "b": 2, "c": 4}, 2, ("b",), id="the fullest that fits"),
        pytest.param({"a": 8, "b": 1, "c": 4}, 2, ("c",), id="the fullest does not fit: the next"),
        pytest.param({"b": 4, "a": 4}, 4, ("a",), id="a tie goes by name"),
        pytest.param({"a": -2, "b": 0, "c": 1}, 1, ("c",), id="overdrawn nodes do not fit"),
    ],
)
def test_choice_of_a_node(free: dict[NodeName, int], wanted: int, chosen: tuple[str, ...]) -> None:
    assert choose_nodes(free, wanted) == chosen


@pytest.mark.parametrize(
    "free, count, chosen",
    [
        pytest.param({"a": 8, "b": 7, "c": 8}, 2, ("a", "c"), id="nodes that are free as a whole"),
        pytest.param({"a": 8, "b": 7}, 2, (), id="one too few: none at all"),
        pytest.param({"c": 8, "b": 8, "a": 8}, 2, ("a", "b"), id="by name"),
        pytest.param({"a": 8, "b": 8, "c": 8, "d": 8}, 4, ("a", "b", "c", "d"), id="all of them"),
    ],
)
def test_choice_of_nodes_for_a_gang(free: dict[NodeName, int], count: int, chosen: tuple[str, ...]) -> None:
    assert choose_nodes(free, 8, count) == chosen


@QUICK
@given(
    free=st.dictionaries(st.sampled_from("abcdef").map(NodeName), st.integers(-4, 8)),
    wanted=st.integers(1, 8),
    count=st.integers(1, 4),
)
def test_choice_fits_is_the_tightest_all_or_none_and_does_not_depend_on_order(
    free: dict[NodeName, int], wanted: int, count: int
) -> None:
    chosen = choose_nodes(free, wanted, count)
    assert chosen == choose_nodes(dict(reversed(free.items())), wanted, count)
    tightest = sorted(room for room in free.values() if room >= wanted)
    assert [free[name] for name in chosen] == (tightest[:count] if len(tightest) >= count else [])
    assert len(set(chosen)) == len(chosen)


def test_a_request_gets_one_of_the_ready_addresses() -> None:
    free = ("slot-a", "slot-b", "slot-c")
    assert {choose_port_slot(free, make_id(number)) for number in range(3)} == set(free)


def test_without_a_ready_address_there_is_none() -> None:
    assert choose_port_slot((), make_id(1)) == ""
