"""A cluster in memory whose servers do what a test says, for tests in which days pass in seconds.

It outlives the controllers that use it, as a real one does. A notice is a file: one that stands already is
not shown again, so that `shown` counts what people on the terminals have seen.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

from gpudev.domain.capacity import Node
from gpudev.domain.errors import ClusterUnavailable
from gpudev.domain.idle import Signal, Usage
from gpudev.domain.job import Job
from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.notices import Notice
from gpudev.domain.plans.orphans import Leftover
from gpudev.domain.server import ObservedMember, ObservedServer, ServerPhase, ServerSpec, SshAddress
from gpudev.ports.cluster import ClusterChange, Snapshot
from gpudev.texts.fact import fact


@dataclass
class SimulatedCluster:
    gpu_type: str
    slots: dict[NodeName, int]
    is_silent: bool = False
    servers: dict[ReservationId, ObservedServer] = field(default_factory=dict)
    sizes: dict[ReservationId, int] = field(default_factory=dict)
    homes: dict[ReservationId, frozenset[Notice]] = field(default_factory=dict)
    shown: Counter[tuple[ReservationId, str]] = field(default_factory=Counter)
    use: dict[ReservationId, dict[Signal, float]] = field(default_factory=dict)
    jobs: dict[ReservationId, Job] = field(default_factory=dict)
    created: list[ReservationId] = field(default_factory=list)
    """Servers that have come since somebody last asked."""
    has_room_changed: bool = True
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def list_leftovers(self) -> tuple[Leftover, ...]:
        return ()

    def snapshot(self) -> Snapshot:
        self._check()
        nodes = tuple(Node(name, self.gpu_type, self.slots[name], self._free(name)) for name in self.slots)
        return Snapshot(nodes, MappingProxyType(dict(self.servers)))

    async def find_server(self, reservation_id: ReservationId, node_count: int = 1) -> ObservedServer | None:
        self._check()
        return self.servers.get(reservation_id)

    async def create_server(self, spec: ServerSpec) -> None:
        self._check()
        if spec.reservation_id not in self.servers:
            uid = f"uid-{next(self._numbers)}"
            self.sizes[spec.reservation_id] = max(1, spec.gpus_per_node)
            members = tuple(
                ObservedMember(node, ServerPhase.STARTING, rank) for rank, node in enumerate(spec.nodes)
            )
            self.servers[spec.reservation_id] = ObservedServer(spec.reservation_id, uid, members)
            self.created.append(spec.reservation_id)

    async def delete_server(self, reservation_id: ReservationId, uid: str) -> None:
        self._check()
        if (server := self.servers.get(reservation_id)) and server.uid == uid:
            self.remove(reservation_id)

    async def tell(self, reservation_id: ReservationId, uid: str, notices: tuple[Notice, ...]) -> None:
        self._check()
        if (server := self.servers.get(reservation_id)) and server.uid == uid:
            for notice in set(notices) - self.homes.get(reservation_id, frozenset()):
                self.shown[reservation_id, notice.text] += 1
            self.homes[reservation_id] = frozenset(notices)

    async def find_job(self, reservation_id: ReservationId, uid: str) -> Job | None:
        self._check()
        return self.jobs.get(reservation_id)

    async def measure(self, reservation_id: ReservationId, uid: str, now: datetime) -> Usage | None:
        self._check()
        server = self.servers.get(reservation_id)
        signals = self.use.get(reservation_id, {})
        return Usage(now, signals, frozenset({Signal.JUPYTER})) if server and server.uid == uid else None

    async def changes(self) -> AsyncIterator[ClusterChange]:
        none: tuple[ClusterChange, ...] = ()
        for change in none:
            yield change

    # What happens to servers by itself

    def become_ready(self, reservation_id: ReservationId) -> None:
        address = SshAddress("10.0.0.1", 30000)
        self._change_members(reservation_id, phase=ServerPhase.READY, address=address, detail=None)

    def become(self, reservation_id: ReservationId, phase: ServerPhase, detail: str = "") -> None:
        told = fact("words", words=detail) if detail else None
        self._change_members(reservation_id, phase=phase, detail=told)

    def run_out_of_memory(self, reservation_id: ReservationId, now: datetime) -> None:
        if server := self.servers.get(reservation_id):
            more = server.oom_kills + 1
            self.servers[reservation_id] = replace(server, oom_kills=more, last_oom_at=now)

    def remove(self, reservation_id: ReservationId) -> None:
        if self.servers.pop(reservation_id, None):
            self.has_room_changed = True

    def _change_members(self, reservation_id: ReservationId, **changes: Any) -> None:
        if server := self.servers.get(reservation_id):
            members = tuple(replace(member, **changes) for member in server.members)
            self.servers[reservation_id] = replace(server, members=members)

    def _free(self, node: NodeName) -> int:
        on_it = (one for one, server in self.servers.items() if node in server.nodes)
        return self.slots[node] - sum(self.sizes.get(one, 1) for one in on_it)

    def _check(self) -> None:
        if self.is_silent:
            raise ClusterUnavailable("words", words="The cluster does not answer.")
