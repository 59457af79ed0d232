"""What the plan is asked and what it gives, in whole steps of time, so that a promise is a round time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from gpudev.domain.names import NodeName

Step = int
"""A step of the grid, counted from its beginning; what happens at a step happens at its first moment."""

FOREVER: Step = 1 << 40
"""The end of what has no end: the room after the last promise, and what strangers hold."""

_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Grid:
    width: timedelta = timedelta(minutes=5)

    def step_of(self, moment: datetime) -> Step:
        """The step that the moment is in."""
        return (moment - _BEGINNING) // self.width

    def step_after(self, moment: datetime) -> Step:
        """The first step that does not begin before the moment."""
        return -((_BEGINNING - moment) // self.width)

    def count(self, length: timedelta) -> int:
        """How many steps cover a length."""
        return -(-length // self.width)

    def time_of(self, step: Step) -> datetime:
        return _BEGINNING + step * self.width


Order = tuple[object, ...]
"""Sorts requests by the policy: the least is offered freed room first."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request, as the plan sees it."""

    id: str
    order: Order
    slots: int
    """On each of its nodes."""
    length: int
    """In steps, with everything that belongs to it: the start, the reserved time and the grace after it."""
    node_count: int = 1
    not_before: Step = 0
    """Where it is a booking: when it starts at the earliest."""
    only_on: frozenset[NodeName] | None = None
    """The nodes that it can be on; None: any."""
    owner: str = ""
    """Whose limit it counts against, where its owner has one."""

    def may_be_on(self, node: NodeName) -> bool:
        return self.only_on is None or node in self.only_on

    @property
    def all_slots(self) -> int:
        return self.slots * self.node_count


@dataclass(frozen=True, slots=True)
class Slot:
    """Room on some nodes for a stretch of time."""

    start: Step
    end: Step
    nodes: tuple[NodeName, ...]
