"""What is asked of the plan, and what it gives: values only."""

from __future__ import annotations

from dataclasses import dataclass

from gpudev.domain.names import NodeName
from gpudev.domain.schedule.grid import Step

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
