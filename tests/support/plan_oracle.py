"""The kept plan by brute force: every step is tried, every node asked, and nothing remembered but slots.

It says the same as `domain.schedule.plan.Plan`, so slowly that it can be read as the definition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpudev.domain.names import NodeName
from gpudev.domain.schedule.grid import Ask, Slot


@dataclass
class Oracle:
    nodes: Mapping[NodeName, int]
    origin: int
    horizon: int
    """A step by which everybody has started."""
    lag: int = 0
    held: list[tuple[NodeName, int, int, int]] = field(default_factory=list)
    """Node, slots, from, to."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """What an owner may have at once."""
    charged: list[tuple[str, int, int, int]] = field(default_factory=list)
    """Owner, slots, from, to: what of the held is whose."""
    asks: dict[str, Ask] = field(default_factory=dict)
    slots: dict[str, Slot] = field(default_factory=dict)

    def free_slots(self) -> dict[NodeName, list[int]]:
        """Of each node, at each step from the origin to the horizon."""
        free = {node: [slots] * (self.horizon - self.origin) for node, slots in self.nodes.items()}
        taken = [(node, slots, start, end) for node, slots, start, end in self.held]
        for ask_id, slot in self.slots.items():
            taken += [(node, self.asks[ask_id].slots, slot.start, slot.end) for node in slot.nodes]
        for node, slots, start, end in taken:
            for step in range(max(start, self.origin), end):
                free[node][step - self.origin] -= slots
        return free

    def allowed_slots(self) -> dict[str, list[int]]:
        """Of each owner who has a limit, at each step."""
        allowed = {owner: [slots] * (self.horizon - self.origin) for owner, slots in self.limits.items()}
        slots = [(self.asks[one], slot) for one, slot in self.slots.items()]
        taken = [(ask.owner, ask.slots * ask.node_count, slot.start, slot.end) for ask, slot in slots]
        for owner, count, start, end in (*self.charged, *taken):
            for step in range(max(start, self.origin), end):
                if owner in allowed:
                    allowed[owner][step - self.origin] -= count
        return allowed

    def find(self, ask: Ask) -> Slot | None:
        free = self.free_slots()
        allowed = self.allowed_slots().get(ask.owner)
        names = [node for node in self.nodes if ask.may_be_on(node)]
        for start in range(max(self.origin, ask.not_before), self.horizon - 2 * ask.length):
            end = start + ask.length + (self.lag if start == self.origin else 0)
            first, last = start - self.origin, end - self.origin
            open_then = sorted(
                (free[node][first], node) for node in names if min(free[node][first:last]) >= ask.slots
            )
            is_allowed = allowed is None or min(allowed[first:last]) >= ask.slots * ask.node_count
            if is_allowed and len(open_then) >= ask.node_count:
                return Slot(start, end, tuple(node for _, node in open_then[: ask.node_count]))
        return None

    def add(self, ask: Ask) -> Slot | None:
        slot = self.find(ask)
        if slot is not None:
            self.asks[ask.id], self.slots[ask.id] = ask, slot
        return slot

    def remove(self, ask_id: str) -> None:
        del self.asks[ask_id], self.slots[ask_id]

    def compress(self) -> tuple[str, ...]:
        moved = []
        for ask in sorted(self.asks.values(), key=lambda one: (one.order, one.id)):
            slot = self.slots.pop(ask.id)
            found = self.find(ask)
            is_earlier = found is not None and found.start < slot.start
            self.slots[ask.id] = found if found is not None and is_earlier else slot
            moved += [ask.id] if is_earlier else []
        return tuple(moved)

    def list_overfull(self) -> list[NodeName]:
        return [node for node, free in self.free_slots().items() if min(free) < 0]

    def list_beyond_their_limit(self) -> list[str]:
        return [owner for owner, free in self.allowed_slots().items() if min(free) < 0]
