"""Which GPU type an Auto Scaling group is for."""

from __future__ import annotations

import pytest

from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.domain.scaling import ScalingGroup, TypeCapacity, find_type, sum_capacity

PREFIX = "pytorch-gpu-dev-gpu-nodes-"


@pytest.mark.parametrize(
    "rest, gpu_type",
    [
        ("t4", "t4"),
        ("t4-small", "t4-small"),
        ("t4-small-reserved", "t4-small"),
        ("t4-smaller", "t4"),
        ("h100-reserved", "h100"),
        ("h100-on-demand-2", "h100"),
        ("cpu-x86-a", "cpu-x86"),
        ("h1000", None),
        ("x9", None),
        ("", None),
    ],
)
def test_longest_known_type_wins(rest: str, gpu_type: str | None) -> None:
    assert find_type(f"{PREFIX}{rest}", DEFAULT_CATALOGUE.by_name) == gpu_type


def test_groups_of_others_are_not_ours() -> None:
    assert find_type("web-t4", DEFAULT_CATALOGUE.by_name) is None
    assert find_type("x-pytorch-gpu-dev-gpu-nodes-t4", DEFAULT_CATALOGUE.by_name) is None


def test_groups_of_a_type_are_added_up_and_types_without_any_have_none() -> None:
    groups = [
        ScalingGroup(f"{PREFIX}h100", 2, 2),
        ScalingGroup(f"{PREFIX}h100-reserved", 3, 1),
        ScalingGroup("other", 9, 9),
    ]
    assert sum_capacity(groups, ["h100", "t4"]) == {"h100": TypeCapacity(5, 3), "t4": TypeCapacity()}
