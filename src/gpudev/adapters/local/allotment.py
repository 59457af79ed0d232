"""Which GPUs a new server gets, and its records: ports, keys, and what the members of a gang share.

GPUs in use are counted from the records alone, so that the count is right after any restart.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import asyncssh

from gpudev.adapters.local.fleet import Fleet, LocalNode
from gpudev.adapters.local.gpus import LocalGpu
from gpudev.adapters.local.record import Gang, GangHost, Record
from gpudev.domain.capacity import Node
from gpudev.domain.server import ServerSpec
from gpudev.texts.fact import Fact, fact

_KEY_KIND = "ssh-ed25519"


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


def draw_up(spec: ServerSpec, given: Given, ports: Sequence[int], uid: str = "") -> tuple[Record, ...]:
    """One record a member, by rank, under one uid."""
    uid = uid or str(uuid.uuid4())
    host_keys = [asyncssh.generate_private_key(_KEY_KIND) for _ in spec.nodes]
    gang = _make_gang(spec, ports, host_keys) if spec.is_gang else None
    return tuple(
        Record(
            spec=spec,
            uid=uid,
            is_placed=True,
            gpus=given.gpus[rank],
            port=ports[rank],
            host_key=host_key.export_private_key().decode(),
            public_host_key=_public_part(host_key),
            rank=rank,
            gang=gang,
        )
        for rank, host_key in enumerate(host_keys)
    )


def draw_up_without_room(spec: ServerSpec, no_room: NoRoom) -> tuple[Record, ...]:
    """Where one member has no room none is placed; the reason is told of that one."""
    uid = str(uuid.uuid4())
    return tuple(
        Record(spec, uid, is_placed=False, detail=no_room.why if rank == no_room.rank else None, rank=rank)
        for rank in range(len(spec.nodes))
    )


def _make_gang(spec: ServerSpec, ports: Sequence[int], host_keys: Sequence[asyncssh.SSHKey]) -> Gang:
    key = asyncssh.generate_private_key(_KEY_KIND)
    members = zip(spec.member_names, ports, host_keys, strict=True)
    return Gang(
        private_key=key.export_private_key().decode(),
        public_key=_public_part(key),
        hosts=tuple(GangHost(name, port, _public_part(host_key)) for name, port, host_key in members),
    )


def _public_part(key: asyncssh.SSHKey) -> str:
    return key.export_public_key().decode().strip()
