"""The records of a server that is about to be made: ports, keys, and what the members of a gang share."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import asyncssh

from gpudev.adapters.local.allotment import Given, NoRoom
from gpudev.adapters.local.record import Gang, GangHost, Record
from gpudev.domain.server import ServerSpec

_KEY_KIND = "ssh-ed25519"


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
