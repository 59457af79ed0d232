"""How much room there is: what the cluster says, less what was promised and is not to be seen there yet."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from gpudev.domain.catalogue import GpuType
from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.reservation import Reservation


@dataclass(frozen=True, slots=True)
class Node:
    """A machine of the cluster. Slots are its GPUs, or the user slots of a CPU node."""

    name: NodeName
    gpu_type: str
    slots: int
    free_slots: int
    """As the cluster counts: slots less what its servers, ours or not, have taken."""
    is_schedulable: bool = True
    """Ready, not cordoned, and with no taint that we do not tolerate."""
    is_simulated: bool = False


@dataclass(frozen=True, slots=True)
class Availability:
    """The room of one GPU type, as `gpu-dev avail` shows it and `gpu_types` keeps it."""

    gpu_type: str
    total: int
    available: int
    max_reservable: int
    full_nodes_available: int
    nodes: int
    is_simulated: bool


def count_free_slots(
    nodes: Iterable[Node],
    gpu_type: GpuType,
    holders: Iterable[Reservation],
    shown: Collection[ReservationId],
) -> dict[NodeName, int]:
    """Free slots of each schedulable node of a type.

    `holders` are the reservations that hold room by the database, `shown` those whose servers the cluster
    has counted already; the others are subtracted here, so that nothing is given twice.
    """
    free = {
        node.name: node.free_slots for node in nodes if node.gpu_type == gpu_type.name and node.is_schedulable
    }
    for holder in holders:
        if holder.holds_room and holder.id not in shown and holder.node in free:
            free[holder.node] -= gpu_type.slots_for(holder.gpu_count)
    return free


def measure_availability(
    nodes: Iterable[Node],
    gpu_type: GpuType,
    holders: Iterable[Reservation],
    shown: Collection[ReservationId],
) -> Availability:
    own = [node for node in nodes if node.gpu_type == gpu_type.name]
    slots = {node.name: node.slots for node in own}
    free = {name: max(0, count) for name, count in count_free_slots(own, gpu_type, holders, shown).items()}
    full_nodes = sum(1 for name, count in free.items() if count == slots[name])
    best_node = max(free.values(), default=0)
    whole_nodes = min(gpu_type.max_nodes, full_nodes) * gpu_type.slots_per_node
    return Availability(
        gpu_type=gpu_type.name,
        total=sum(slots.values()),
        available=sum(free.values()),
        max_reservable=max(whole_nodes, best_node) if gpu_type.max_nodes > 1 else best_node,
        full_nodes_available=full_nodes,
        nodes=len(own),
        is_simulated=any(node.is_simulated for node in own),
    )
