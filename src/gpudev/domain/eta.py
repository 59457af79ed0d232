"""When a waiting request will start: every reservation has an end, so the future can be computed.

First come, first served: no request starts before an earlier one of its type. Each takes the node that
has room for it first (of several, the fullest), and gives the room back when its own time is over. A gang
takes several nodes at once, and starts when the last of them has room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from gpudev.domain.catalogue import GpuType
from gpudev.domain.expiry import TimePolicy, room_is_free_at
from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.reservation import Reservation


@dataclass(frozen=True, slots=True, order=True)
class Release:
    """Slots of a node that come back at a time, and whose they were."""

    at: datetime
    held_by: ReservationId
    slots: int


@dataclass(frozen=True, slots=True)
class Opening:
    """When a node has room, and the reservation whose end makes it.

    No blocker: the room is there before its turn in the line comes.
    """

    start: datetime
    node: NodeName
    blocker: ReservationId | None


@dataclass(frozen=True, slots=True)
class Forecast:
    """When and where a request starts."""

    nodes: tuple[NodeName, ...]
    last: Opening
    """Of the node that has room last; for most requests, of the only one."""

    @property
    def start(self) -> datetime:
        return self.last.start


class Timeline:
    """The free slots of each node, now and after each release to come."""

    def __init__(self, free_slots: Mapping[NodeName, int]) -> None:
        self._free = dict(free_slots)
        self._releases: dict[NodeName, list[Release]] = {name: [] for name in free_slots}

    def hold(self, node: NodeName, release: Release) -> None:
        """Slots that are taken already and come back later."""
        if node in self._releases:
            self._releases[node] = sorted([*self._releases[node], release])

    def earliest(self, wanted: int, not_before: datetime, count: int = 1) -> Forecast | None:
        """The first time at which so many nodes have room; of more, those that will be the fullest then.

        Room that has come stays until it is taken here, so a node that had some earlier has it still.
        """
        found = sorted(
            (opening for name in self._free if (opening := self._opening_on(name, wanted, not_before))),
            key=lambda opening: opening.start,
        )
        if len(found) < count:
            return None
        start = found[count - 1].start
        open_then = [opening for opening in found if opening.start <= start]
        open_then.sort(key=lambda opening: (self._free_at(opening.node, start), opening.node))
        chosen = open_then[:count]
        last = max(chosen, key=lambda opening: (opening.start, opening.blocker is not None))
        return Forecast(tuple(opening.node for opening in chosen), last)

    def take(self, forecast: Forecast, release: Release) -> None:
        """Settle a request at its forecast; what was released before its start is plain free room now."""
        for node in forecast.nodes:
            rest = [entry for entry in self._releases[node] if entry.at > forecast.start]
            self._free[node] = self._free_at(node, forecast.start) - release.slots
            self._releases[node] = sorted([*rest, release])

    def _free_at(self, node: NodeName, at: datetime) -> int:
        return self._free[node] + sum(entry.slots for entry in self._releases[node] if entry.at <= at)

    def _opening_on(self, node: NodeName, wanted: int, not_before: datetime) -> Opening | None:
        free = self._free[node]
        if free >= wanted:
            return Opening(not_before, node, None)
        for release in self._releases[node]:
            free += release.slots
            if free >= wanted:
                blocker = release.held_by if release.at >= not_before else None
                return Opening(max(release.at, not_before), node, blocker)
        return None


@dataclass(frozen=True, slots=True)
class Forecaster:
    """The fixed part of a forecast: the type, the clock and the time rules."""

    gpu_type: GpuType
    now: datetime
    policy: TimePolicy

    def forecast(
        self,
        free_slots: Mapping[NodeName, int],
        holders: Iterable[Reservation],
        waiting: Sequence[Reservation],
    ) -> dict[ReservationId, Forecast]:
        """A start for each waiting request, in order.

        Room that others than reservations have taken comes back at no known time. The first request that
        needs it has no forecast, and neither have those behind it.
        """
        timeline = Timeline(free_slots)
        for holder in holders:
            for node in holder.nodes:
                timeline.hold(node, self._release_of(holder))
        forecasts: dict[ReservationId, Forecast] = {}
        not_before = self.now
        for request in waiting:
            slots = self.gpu_type.slots_for(request.gpus_per_node)
            forecast = timeline.earliest(slots, not_before, request.node_count)
            if forecast is None:
                break
            ends = forecast.start + request.duration + self.policy.grace
            timeline.take(forecast, Release(ends, request.id, slots))
            forecasts[request.id] = forecast
            not_before = forecast.start
        return forecasts

    def _release_of(self, holder: Reservation) -> Release:
        at = room_is_free_at(holder, self.now, self.policy)
        return Release(at, holder.id, self.gpu_type.slots_for(holder.gpus_per_node))
