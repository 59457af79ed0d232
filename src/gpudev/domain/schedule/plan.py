"""The kept plan: a slot for each request that waits, which moves earlier and never later.

A new request takes the earliest hole that fits its whole length, and nobody else moves. When room has come
back, one *compression* goes through the requests in the order of the policy, takes each out, fits it anew,
and keeps the new slot only if it is strictly earlier. Planning everybody anew instead would break promises:
one who moves earlier may take the room that made another's time possible.

An owner may have limits: further staircases, of what they may have at once on all nodes together. Then a
slot is the earliest at which both the nodes and the owner's limits have room. See `allowance`.

Time is counted in steps. `origin` is the step that the present moment is in; as a start it means "now". A
request that starts now, within the step, ends as much later, so that it takes one step more (`lag`).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from gpudev.domain.names import NodeName
from gpudev.domain.schedule.grid import FOREVER, Ask, Order, Slot, Step
from gpudev.domain.schedule.holes import Holes, Opening, find_together
from gpudev.domain.schedule.room import Allowance, Limit, Room


class Plan:
    def __init__(
        self,
        slots_of_nodes: Mapping[NodeName, int],
        origin: Step,
        *,
        longest: int,
        lag: int = 0,
        limits: Mapping[str, int] | None = None,
        long_limits: Mapping[str, Limit] | None = None,
    ) -> None:
        """`longest` is the greatest length that is expected, in steps; longer ones cost a new index."""
        self.origin = origin
        self._lag = lag
        self._longest = longest + 1
        self._names = sorted(slots_of_nodes)
        self._numbers = {name: number for number, name in enumerate(self._names)}
        self._rooms = [Room(slots_of_nodes[name], origin) for name in self._names]
        self._allowed: defaultdict[str, list[Allowance]] = defaultdict(list)
        for owner, slots in (limits or {}).items():
            self._allowed[owner].append(Allowance(Limit(slots), origin))
        for owner, limit in (long_limits or {}).items():
            self._allowed[owner].append(Allowance(limit, origin))
        self._holes: dict[int, Holes] = {}
        self._firsts: dict[tuple[int, int], Step] = {}
        self._asks: dict[str, Ask] = {}
        self._slots: dict[str, Slot] = {}
        self._line: list[tuple[Order, str]] = []
        # How many times room came back, and how many when each request was fitted last.
        self._returns = 0
        self._fitted: dict[str, int] = {}

    # What is known of it

    def find_slot(self, ask_id: str) -> Slot | None:
        return self._slots.get(ask_id)

    def items(self) -> Iterator[tuple[Ask, Slot]]:
        """Everybody in the order of the policy."""
        return ((self._asks[ask_id], self._slots[ask_id]) for _, ask_id in self._line)

    def free_at(self, node: NodeName, step: Step) -> int:
        return self._rooms[self._numbers[node]].at(step)

    def has_room(self, node: NodeName, slots: int, start: Step, end: Step) -> bool:
        number = self._numbers.get(node)
        return number is not None and self._rooms[number].least(max(start, self.origin), end) >= slots

    def stays_free_until(self, node: NodeName, slots: int, start: Step) -> Step:
        """How long so many slots are free from a step on; the step itself if they are not at all."""
        for begin, end in self._holes_for(slots).on_node(self._numbers[node]):
            if begin <= start < end:
                return end
        return start

    def allowed_until(self, owner: str, slots: int, start: Step) -> Step:
        """How long the owner may have so many slots more from a step on."""
        return min((one.free_until(slots, start) for one in self._allowed.get(owner, ())), default=FOREVER)

    def find_obstacle(self, ask: Ask, step: Step) -> Limit | None:
        """The owner's limit that has no room for it then, its own slot left out."""
        end = step + max(1, ask.length)
        obstacles = (
            one.limit
            for one in self._allowed.get(ask.owner, ())
            if not one.has_room(ask.all_slots, step, min(end, step + one.limit.tail + 1))
        )
        return next(obstacles, None)

    # Room that is nobody's slot: running reservations, strangers, maintenance

    def hold(self, node: NodeName, slots: int, start: Step, end: Step) -> None:
        if node in self._numbers and start < end:
            self._take(self._numbers[node], slots, start, end)

    def charge(self, owner: str, slots: int, start: Step, end: Step) -> None:
        """The owner has so many slots (or, negative, fewer) in this time, wherever they are."""
        if owner in self._allowed and start < end:
            self._charge(owner, slots, start, end)
            self._returns += slots < 0

    def give_back(self, node: NodeName, slots: int, start: Step, end: Step) -> None:
        if node in self._numbers and start < end:
            self._return(self._numbers[node], slots, start, end)

    # Slots

    def find(self, ask: Ask) -> Slot | None:
        """The earliest slot that fits; None if there never is one."""
        if ask.length >= self._longest:
            self._longest = 2 * ask.length
            self._holes.clear()
        slot = self._find_first(ask)
        if slot is None or self._suits(ask, slot):
            return slot
        return self._slot_of(ask, self._openings_among(ask))

    def _find_first(self, ask: Ask) -> Slot | None:
        """The earliest, as if any node would do and nobody had a limit."""
        if ask.not_before > self.origin:
            return self._slot_of(ask, self._openings_from(ask))
        if ask.node_count == 1:
            first = self._holes_for(ask.slots).find_first(ask.length)
            if first is None:
                return None
            if first.start > self.origin or first.length >= ask.length + self._lag:
                return Slot(first.start, self._end_of(ask, first.start), (self._names[first.node],))
        return self._slot_of(ask, self._openings(ask))

    def add(self, ask: Ask) -> Slot | None:
        """Give a new request the earliest slot; nobody else moves."""
        slot = self.find(ask)
        if slot is not None:
            self._settle(ask, slot)
        return slot

    def keep(self, ask: Ask, slot: Slot, *, from_step: Step | None = None) -> bool:
        """Settle a request where it was promised; False, and nothing happens, if there is no room any more.

        Room is looked for from `from_step` on: for one whose time has come, what is about to be freed counts.
        """
        start = slot.start if from_step is None else from_step
        if not all(self.has_room(node, ask.slots, start, slot.end) for node in slot.nodes):
            return False
        if not self._suits(ask, Slot(start, slot.end, slot.nodes), is_promised=True):
            return False
        self._settle(ask, slot)
        # It was found in an earlier plan: whether this one has an earlier slot was not looked at yet.
        self._fitted[ask.id] = -1
        return True

    def remove(self, ask_id: str) -> None:
        """It left, and its room is there for others; `compress` offers it to them."""
        ask, slot = self._asks.pop(ask_id), self._slots.pop(ask_id)
        del self._line[bisect_left(self._line, (ask.order, ask_id))], self._fitted[ask_id]
        self._change_all(ask, slot, ask.slots)
        self._returns += 1

    def reorder(self, order_of: Callable[[Ask], Order]) -> None:
        """Offer freed room in another order from now on."""
        for ask_id, ask in self._asks.items():
            self._asks[ask_id] = replace(ask, order=order_of(ask))
        self._line = sorted((ask.order, ask_id) for ask_id, ask in self._asks.items())

    def compress(self, newcomers: Iterable[Ask] = ()) -> tuple[str, ...]:
        """Offer what is free to everybody in order, once; those who start earlier now.

        Newcomers, who have no slot yet, get one when it is their turn in that order.
        """
        without = {ask.id: ask for ask in newcomers}
        moved: list[str] = []
        newcomers_in_line = [(ask.order, ask.id) for ask in without.values()]
        for _, ask_id in sorted([*self._line, *newcomers_in_line]) if without else tuple(self._line):
            if ask_id in without:
                self.add(without[ask_id])
            elif self._may_move(ask_id) and self._pull(ask_id):
                moved.append(ask_id)
        return tuple(moved)

    def advance(self, origin: Step, lag: int = 0) -> None:
        """Time has passed: nothing starts before this step."""
        is_later, self.origin, self._lag = origin > self.origin, origin, lag
        if not is_later:
            return
        self._firsts.clear()
        for allowances in self._allowed.values():
            for allowance in allowances:
                allowance.forget_before(origin)
        for number, room in enumerate(self._rooms):
            room.forget_before(origin)
            for holes in self._holes.values():
                holes.forget_before(number, room, origin)

    # How a slot is found

    def _may_move(self, ask_id: str) -> bool:
        """Whether a look is worth its while: most stand as early as they can, and that is seen at once.

        There is an earlier hole of its length; or its own node has room in the step before, which is all it
        takes there, since the rest is its own. With several nodes that is too much to see at a glance. Where
        a look costs more, nobody looks again before room has come back.
        """
        ask, slot = self._asks[ask_id], self._slots[ask_id]
        start = slot.start
        if start <= self.origin or start <= ask.not_before:
            return False
        if ask.node_count > 1 or ask.not_before > self.origin:
            return self._returns > self._fitted[ask_id]
        is_restricted = ask.only_on is not None or ask.owner in self._allowed
        if is_restricted and self._returns <= self._fitted[ask_id]:
            return False
        if self._first_start(ask.slots, ask.length) < start:
            return True
        return self._rooms[self._numbers[slot.nodes[0]]].at(start - 1) >= ask.slots

    def _first_start(self, slots: int, length: int) -> Step:
        """When the first hole of this size begins; the same until some room changes."""
        first = self._firsts.get((slots, length))
        if first is None:
            first = self._firsts[slots, length] = self._holes_for(slots).first_start(length)
        return first

    def _pull(self, ask_id: str) -> bool:
        ask, slot = self._asks[ask_id], self._slots[ask_id]
        self._change_all(ask, slot, ask.slots)
        found = self.find(ask)
        is_earlier = found is not None and found.start < slot.start
        chosen = found if found is not None and is_earlier else slot
        self._change_all(ask, chosen, -ask.slots)
        if is_earlier:
            self._slots[ask_id] = chosen
            self._returns += 1
        self._fitted[ask_id] = self._returns
        return is_earlier

    def _slot_of(self, ask: Ask, openings: Iterator[Opening]) -> Slot | None:
        found = find_together(openings, ask.node_count, lambda node, start: self._rooms[node].at(start))
        if found is None:
            return None
        start, nodes = found
        return Slot(start, self._end_of(ask, start), tuple(self._names[node] for node in nodes))

    def _openings(self, ask: Ask) -> Iterator[Opening]:
        for hole in self._holes_for(ask.slots).in_order(ask.length):
            if hole.start > self.origin or hole.length >= ask.length + self._lag:
                yield Opening(hole.start, hole.end - ask.length, hole.node)

    def _openings_from(self, ask: Ask) -> Iterator[Opening]:
        holes = self._holes_for(ask.slots)
        return iter(
            sorted(
                Opening(max(start, ask.not_before), end - ask.length, node)
                for node in range(len(self._names))
                for start, end in holes.on_node(node)
                if end - ask.length >= max(start, ask.not_before)
            )
        )

    def _openings_among(self, ask: Ask) -> Iterator[Opening]:
        """On the nodes that it may go to, in the times that its owner's limits leave."""
        holes, windows = self._holes_for(ask.slots), self._list_windows(ask)
        numbers = [number for number, name in enumerate(self._names) if ask.may_be_on(name)]
        overlaps = (
            (max(start, since, ask.not_before), min(end, until), node)
            for node in numbers
            for start, end in holes.on_node(node)
            for since, until in windows
        )
        return iter(
            sorted(
                Opening(start, end - ask.length, node)
                for start, end, node in overlaps
                if self._end_of(ask, start) <= end
            )
        )

    def _list_windows(self, ask: Ask) -> list[tuple[Step, Step]]:
        windows = [(self.origin, FOREVER)]
        for allowance in self._allowed.get(ask.owner, ()):
            if ask.length > allowance.limit.tail:
                others = allowance.list_windows(ask.all_slots, self.origin)
                windows = [
                    (max(since, start), min(until, end))
                    for since, until in windows
                    for start, end in others
                    if max(since, start) < min(until, end)
                ]
        return windows

    def _suits(self, ask: Ask, slot: Slot, *, is_promised: bool = False) -> bool:
        """Whether its owner's limits and its nodes allow it; what is promised only a strict limit breaks."""
        start = max(slot.start, self.origin)
        allowances = self._allowed.get(ask.owner, ())
        return all(
            allowance.has_room(ask.all_slots, start, slot.end)
            for allowance in allowances
            if allowance.limit.is_strict or not is_promised
        ) and all(ask.may_be_on(node) for node in slot.nodes)

    def _end_of(self, ask: Ask, start: Step) -> Step:
        return start + ask.length + (self._lag if start == self.origin else 0)

    # How room changes hands

    def _settle(self, ask: Ask, slot: Slot) -> None:
        self._change_all(ask, slot, -ask.slots)
        self._asks[ask.id], self._slots[ask.id] = ask, slot
        insort(self._line, (ask.order, ask.id))
        self._fitted[ask.id] = self._returns
        self._holes_for(ask.slots)

    def _change_all(self, ask: Ask, slot: Slot, slots: int) -> None:
        """More (or, negative, less) room on all of its nodes, and as much for its owner."""
        for node in slot.nodes:
            self._change(self._numbers[node], slot.start, slot.end, slots)
        if ask.owner in self._allowed:
            start = max(slot.start, self.origin)
            self._charge(ask.owner, -slots * ask.node_count, start, slot.end)

    def _charge(self, owner: str, slots: int, start: Step, end: Step) -> None:
        for allowance in self._allowed[owner]:
            allowance.change(start, end, -slots)

    def _take(self, node: int, slots: int, start: Step, end: Step) -> None:
        self._change(node, start, end, -slots)

    def _return(self, node: int, slots: int, start: Step, end: Step) -> None:
        self._change(node, start, end, slots)
        self._returns += 1

    def _change(self, node: int, start: Step, end: Step, slots: int) -> None:
        start = max(start, self.origin)
        if start >= end:
            return
        room = self._rooms[node]
        room.change(start, end, slots)
        self._firsts.clear()
        for holes in self._holes.values():
            holes.update(node, room, start, end, grows=slots > 0)

    def _holes_for(self, wanted: int) -> Holes:
        """Of a size that nobody has asked for yet, they are found now."""
        holes = self._holes.get(wanted)
        if holes is None:
            holes = self._holes[wanted] = Holes(wanted, self._rooms, self._longest)
            for node, room in enumerate(self._rooms):
                holes.update(node, room, self.origin, FOREVER)
        return holes
