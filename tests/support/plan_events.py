"""Lines of requests and what happens to them, for properties of the kept plan: small worlds, many ties."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import assert_never

from hypothesis import strategies as st

from gpudev.domain.names import NodeName
from gpudev.domain.schedule.grid import Ask, Slot
from gpudev.domain.schedule.plan import Plan
from tests.support.plan_oracle import Oracle

ORIGIN = 100
HORIZON = 300
LONGEST = 16


@dataclass(frozen=True, slots=True)
class Hold:
    """A running reservation."""

    node: NodeName
    slots: int
    until: int
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Submit:
    ask: Ask


@dataclass(frozen=True, slots=True)
class Cancel:
    which: int


@dataclass(frozen=True, slots=True)
class Release:
    """A running reservation ends early, now."""

    which: int


Happening = Submit | Cancel | Release


@dataclass(frozen=True, slots=True)
class Story:
    nodes: dict[NodeName, int]
    lag: int
    holds: tuple[Hold, ...]
    happenings: tuple[Happening, ...]
    limits: dict[str, int] = field(default_factory=dict)


@st.composite
def stories(draw: st.DrawFn, *, hour: int | None = None) -> Story:
    """With `hour`, all lengths are multiples of so many steps, so that very much happens at once."""
    names = [NodeName(name) for name in "abcd"[: draw(st.integers(1, 4))]]
    nodes = {name: draw(st.sampled_from([4, 8])) for name in names}
    unit = hour or draw(st.sampled_from([1, 4]))
    limits = {"limited": draw(st.sampled_from([8, 12]))} if draw(st.booleans()) else {}
    left_to_owner = limits.get("limited", 0)
    holds = []
    for name in names:
        left = nodes[name]
        for slots in draw(st.lists(st.sampled_from([1, 2, 4, 8]), max_size=3)):
            if slots <= left:
                left -= slots
                owner = "limited" if slots <= left_to_owner and draw(st.booleans()) else ""
                left_to_owner -= slots if owner else 0
                holds.append(Hold(name, slots, ORIGIN + unit * draw(st.integers(1, 12 // unit)), owner))
    happenings = draw(st.lists(_happenings(unit), min_size=1, max_size=14))
    numbered = [
        Submit(replace(one.ask, id=f"{number:03}", order=(number,))) if isinstance(one, Submit) else one
        for number, one in enumerate(happenings)
    ]
    return Story(nodes, draw(st.integers(0, 1)), tuple(holds), tuple(numbered), limits)


def _happenings(unit: int) -> st.SearchStrategy[Happening]:
    return st.one_of(
        st.builds(Submit, _asks(unit)),
        st.builds(Submit, _asks(unit)),
        st.builds(Cancel, st.integers(0, 20)),
        st.builds(Release, st.integers(0, 20)),
    )


@st.composite
def _asks(draw: st.DrawFn, unit: int) -> Ask:
    slots = draw(st.sampled_from([1, 1, 2, 4, 8]))
    node_count = draw(st.sampled_from([1, 1, 1, 2, 3])) if slots >= 4 else 1
    booked = draw(st.sampled_from([0, 0, 0, ORIGIN + 2 * unit, ORIGIN + 5]))
    owner = draw(st.sampled_from(["", "limited"]))
    only_on = draw(st.sampled_from([None, None, None, frozenset("ac"), frozenset("b")]))
    length = unit * draw(st.integers(1, LONGEST // unit // 2))
    return Ask("", (), slots, length, node_count, booked, only_on, owner)


class Told:
    """A story as it is told to a plan, or to the oracle."""

    def __init__(self, story: Story, plan: Plan | Oracle) -> None:
        self.plan = plan
        self.running = list(story.holds)
        self.waiting: list[str] = []
        for hold in story.holds:
            if isinstance(plan, Oracle):
                plan.held.append((hold.node, hold.slots, ORIGIN, hold.until))
                plan.charged.append((hold.owner, hold.slots, ORIGIN, hold.until))
            else:
                plan.hold(hold.node, hold.slots, ORIGIN, hold.until)
                plan.charge(hold.owner, hold.slots, ORIGIN, hold.until)

    def tell(self, happening: Happening) -> tuple[str, ...]:
        """Let it happen; those who moved by it."""
        match happening:
            case Submit(ask):
                self.waiting += [ask.id] if self.plan.add(ask) else []
                return ()
            case Cancel(which):
                if not self.waiting:
                    return ()
                self.plan.remove(self.waiting.pop(which % len(self.waiting)))
            case Release(which):
                if not self.running:
                    return ()
                self._release(self.running.pop(which % len(self.running)))
            case other:
                assert_never(other)
        return self.plan.compress()

    def _release(self, hold: Hold) -> None:
        if isinstance(self.plan, Oracle):
            self.plan.held.remove((hold.node, hold.slots, ORIGIN, hold.until))
            self.plan.charged.remove((hold.owner, hold.slots, ORIGIN, hold.until))
        else:
            self.plan.charge(hold.owner, -hold.slots, ORIGIN, hold.until)
            self.plan.give_back(hold.node, hold.slots, ORIGIN, hold.until)

    def slots(self) -> dict[str, Slot]:
        if isinstance(self.plan, Oracle):
            return dict(self.plan.slots)
        return {ask.id: slot for ask, slot in self.plan.items()}


def make_plan(story: Story) -> Plan:
    return Plan(story.nodes, ORIGIN, longest=LONGEST, lag=story.lag, limits=story.limits)


def make_oracle(story: Story) -> Oracle:
    return Oracle(story.nodes, ORIGIN, HORIZON, story.lag, limits=story.limits)
