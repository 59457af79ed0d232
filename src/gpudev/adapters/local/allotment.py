"""Who has which GPU: counted from the records alone, so that it is right after any restart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpudev.adapters.local.nodes.fleet import Fleet, LocalNode
from gpudev.adapters.local.nodes.gpu import LocalGpu
from gpudev.adapters.local.record import Record
from gpudev.domain.capacity import Node
from gpudev.domain.server import ServerSpec
from gpudev.texts.fact import Fact, fact


@dataclass(frozen=True, slots=True)
class Given:
    gpus: tuple[tuple[LocalGpu, ...], ...]
    """Those of each member, by rank."""


@dataclass(frozen=True, slots=True)
class NoRoom:
    why: Fact
    rank: int = 0
    """Of the first member for which there is none."""


Allotment = Given | NoRoom


def list_nodes(fleet: Fleet, records: Iterable[Record]) -> tuple[Node, ...]:
    placed = [record for record in records if record.is_placed]
    return tuple(
        Node(
            name=node.name,
            gpu_type=node.gpu_type,
            slots=node.slots,
            free_slots=max(0, node.slots - _count_taken(node, placed)),
            is_simulated=node.is_simulated,
            labels=node.labels,
        )
        for node in fleet.nodes
    )


def allot(fleet: Fleet, records: Iterable[Record], spec: ServerSpec) -> Allotment:
    """GPUs for every member on the node that the spec names for it, or for none of them."""
    placed = [record for record in records if record.is_placed]
    given = []
    for rank in range(len(spec.nodes)):
        gpus = _allot_member(fleet, placed, spec, rank)
        if isinstance(gpus, NoRoom):
            return gpus
        given.append(gpus)
    return Given(tuple(given))


def _allot_member(
    fleet: Fleet, all_placed: Iterable[Record], spec: ServerSpec, rank: int
) -> tuple[LocalGpu, ...] | NoRoom:
    """The lowest free GPUs of its node."""
    node = fleet.find_node(spec.nodes[rank])
    if node is None or node.gpu_type != spec.gpu_type:
        return NoRoom(fact("no_such_node_here", gpu_type=spec.gpu_type, node=spec.nodes[rank]), rank)
    placed = [record for record in all_placed if record.node == node.name]
    taken = {gpu.visible_name for record in placed for gpu in record.gpus}
    free = [gpu for gpu in node.gpus if gpu.visible_name not in taken]
    free_slots = len(free) if node.gpus else node.slots - _count_taken(node, placed)
    if free_slots < (wanted := _slots_of(spec)):
        why = fact("node_too_full", node=node.name, free=free_slots, slots=node.slots, wanted=wanted)
        return NoRoom(why, rank)
    return tuple(free[: spec.gpus_per_node])


def _count_taken(node: LocalNode, placed: Iterable[Record]) -> int:
    return sum(_slots_of(record.spec) for record in placed if record.node == node.name)


def _slots_of(spec: ServerSpec) -> int:
    """What each member takes of its node."""
    return spec.gpus_per_node or 1
