"""Where a request goes: the fullest nodes that fit, so that whole nodes stay free, and a ready address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpudev.domain.names import NodeName, ReservationId, id8


def choose_nodes(free_slots: Mapping[NodeName, int], wanted: int, count: int = 1) -> tuple[NodeName, ...]:
    """So many nodes with room for `wanted` each, or none at all: a gang is placed as a whole.

    Those with the least free room that still fit; the name breaks ties, so equal inputs agree. A gang wants
    all slots of its nodes, so that only nodes that are free as a whole fit it.
    """
    fitting = sorted((free, name) for name, free in free_slots.items() if free >= wanted)
    return tuple(name for _, name in fitting[:count]) if len(fitting) >= count else ()


def keep_near(
    free_slots: Mapping[NodeName, int], zones: Mapping[NodeName, str], zone: str
) -> dict[NodeName, int]:
    """The nodes of this zone; all of them if none is meant."""
    return {name: free for name, free in free_slots.items() if not zone or zones.get(name) == zone}


def choose_port_slot(free: Sequence[str], reservation_id: ReservationId) -> str:
    """One of the ready addresses, or none. Passes for other types choose at the same time: not the same."""
    return free[int(id8(reservation_id), 16) % len(free)] if free else ""
