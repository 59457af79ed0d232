"""How much room there is: what the cluster says, less what was promised and is not to be seen there yet.

A request may ask for labels of nodes: those on the operator's list, and no others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from gpudev.domain.catalogue import GpuType
from gpudev.domain.errors import Invalid
from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.reservation import Reservation
from gpudev.domain.server import ObservedServer, ServerPhase

Labels = Mapping[str, str]


def check_labels(asked: Labels, offered: Mapping[str, Iterable[str]]) -> dict[str, str]:
    for name, value in asked.items():
        if name not in offered:
            raise Invalid(
                "unknown_node_label", name=name, choices=_list_choices(offered), code="unknown_node_label"
            )
        if value not in offered[name]:
            raise Invalid(
                "unknown_node_label_value",
                name=name,
                value=value,
                choices=_list_choices({name: offered[name]}),
                code="unknown_node_label",
            )
    return dict(asked)


def has_labels(labels: Labels, wanted: Labels) -> bool:
    return all(labels.get(name) == value for name, value in wanted.items())


def in_short(labels: Labels) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(labels.items()))


def _list_choices(offered: Mapping[str, Iterable[str]]) -> list[str]:
    return [f"{name}={value}" for name, values in sorted(offered.items()) for value in sorted(values)]


Held = tuple[ReservationId, NodeName]
"""The room that a reservation holds on one of its nodes."""


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
    zone: str = ""
    """Where it is, for volumes that cannot leave their zone; empty where that does not matter."""
    labels: Labels = field(default_factory=dict)


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
    next_start_at: datetime | None = None
    """When a new request for one unit would start; None: at once, or never."""


def list_shown(
    holders: Iterable[Reservation], servers: Mapping[ReservationId, ObservedServer]
) -> frozenset[Held]:
    """What the nodes' free slots account for already.

    A member that found no room takes none, and one left over on another node takes none of this one.
    """
    return frozenset(
        (holder.id, member.node)
        for holder in holders
        if (server := servers.get(holder.id))
        for member in server.members
        if member.node in holder.nodes and member.phase is not ServerPhase.UNPLACEABLE
    )


def could_hold(nodes: Iterable[Node], gpu_type: GpuType, request: Reservation) -> bool:
    """Whether the nodes in service could ever take it, if they were empty."""
    wanted = gpu_type.slots_for(request.gpus_per_node)
    fitting = [
        node
        for node in nodes
        if node.gpu_type == gpu_type.name
        and node.is_schedulable
        and node.slots >= wanted
        and has_labels(node.labels, request.spec.node_labels)
    ]
    return len(fitting) >= request.spec.node_count


def count_free_slots(
    nodes: Iterable[Node],
    gpu_type: GpuType,
    holders: Iterable[Reservation],
    shown: Collection[Held],
) -> dict[NodeName, int]:
    """Free slots of each schedulable node of a type.

    `holders` are the reservations that hold room by the database, `shown` what of it the cluster has
    counted already; the rest is subtracted here, so that nothing is given twice.
    """
    free = {
        node.name: node.free_slots for node in nodes if node.gpu_type == gpu_type.name and node.is_schedulable
    }
    for holder in holders:
        for node in holder.nodes:
            if holder.holds_room and (holder.id, node) not in shown and node in free:
                free[node] -= gpu_type.slots_for(holder.gpus_per_node)
    return free


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """What a node in service has for reservations."""

    name: NodeName
    slots: int
    foreign: int = 0
    """Slots that others than reservations have taken; they come back at no known time."""
    labels: Labels = field(default_factory=dict)
    """Those that may be asked for."""


def measure_rooms(
    nodes: Iterable[Node],
    gpu_type: GpuType,
    holders: Iterable[Reservation],
    shown: Collection[Held],
    offered_labels: Collection[str] = (),
) -> tuple[NodeRoom, ...]:
    """The nodes of a type in service. What is taken there by no reservation that is shown is foreign."""
    known: Counter[NodeName] = Counter()
    for holder in holders:
        for node in holder.nodes:
            if (holder.id, node) in shown and holder.holds_room:
                known[node] += gpu_type.slots_for(holder.gpus_per_node)
    return tuple(
        NodeRoom(
            node.name,
            node.slots,
            max(0, node.slots - node.free_slots - known[node.name]),
            {name: value for name, value in node.labels.items() if name in offered_labels},
        )
        for node in nodes
        if node.gpu_type == gpu_type.name and node.is_schedulable
    )


def measure_availability(
    nodes: Iterable[Node],
    gpu_type: GpuType,
    holders: Iterable[Reservation],
    shown: Collection[Held],
) -> Availability:
    own = [node for node in nodes if node.gpu_type == gpu_type.name]
    slots = {node.name: node.slots for node in own}
    free = {name: max(0, count) for name, count in count_free_slots(own, gpu_type, holders, shown).items()}
    # A node whose GPUs are not up yet has no slots: it is not a free node.
    full_nodes = sorted((count for name, count in free.items() if 0 < count == slots[name]), reverse=True)
    best_node = max(free.values(), default=0)
    return Availability(
        gpu_type=gpu_type.name,
        total=sum(slots.values()),
        available=sum(free.values()),
        max_reservable=max(best_node, sum(full_nodes[: gpu_type.max_nodes])),
        full_nodes_available=len(full_nodes),
        nodes=len(own),
        is_simulated=any(node.is_simulated for node in own),
    )
