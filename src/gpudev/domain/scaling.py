"""Auto Scaling groups, and which GPU type each is for: that is said by its name alone.

A type may have several groups side by side, reserved and on-demand machines for example; a suffix tells them
apart. The longest type that fits wins, so that a group of `t4-small` is not one of `t4`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

GROUP_PREFIX = "pytorch-gpu-dev-gpu-nodes-"


@dataclass(frozen=True, slots=True)
class ScalingGroup:
    name: str
    desired: int
    in_service: int
    """Machines that run and count as healthy."""


@dataclass(frozen=True, slots=True)
class TypeCapacity:
    """What the groups of one type come to."""

    desired: int = 0
    running: int = 0


def find_type(group_name: str, known_types: Iterable[str]) -> str | None:
    """The type that a group is for; None if it is not one of ours."""
    if not group_name.startswith(GROUP_PREFIX):
        return None
    rest = group_name.removeprefix(GROUP_PREFIX)
    fitting = [name for name in known_types if rest == name or rest.startswith(f"{name}-")]
    return max(fitting, key=len, default=None)


def sum_capacity(groups: Iterable[ScalingGroup], known_types: Iterable[str]) -> Mapping[str, TypeCapacity]:
    """By type, also those without any group."""
    known = tuple(known_types)
    sums = dict.fromkeys(known, TypeCapacity())
    for group in groups:
        name = find_type(group.name, known)
        if name is not None:
            before = sums[name]
            sums[name] = TypeCapacity(before.desired + group.desired, before.running + group.in_service)
    return sums
