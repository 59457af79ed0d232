"""The same dev server without the product around it: what a claim costs at the very least.

`PreparedStart` has the local adapter start it, whose zygote has everything imported already, as it does for
the product. `ColdStart` runs the dev server's program itself, as a person would who types its command.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import asyncssh
import structlog

from gpudev.adapters.local.cluster import LocalCluster
from gpudev.adapters.local.cluster_config import LocalClusterConfig
from gpudev.adapters.local.devserver.order import StartOrder
from gpudev.adapters.local.fleet import load_fleet
from gpudev.adapters.local.ports import bind_any_port
from gpudev.adapters.local.record import Record
from gpudev.adapters.local.records import Records
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.adapters.local.server_processes import stop_all_servers
from gpudev.domain.catalogue import Share
from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.server import ServerSpec

_ANSWER_SECONDS = 60


def make_public_key() -> str:
    return asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().strip()


def read_first_byte(host: str, port: int) -> None:
    """Wait until the SSH server at this address says something."""
    with socket.create_connection((host, port), timeout=_ANSWER_SECONDS) as connection:
        if not connection.recv(1):
            raise ConnectionResetError(f"{host}:{port} closed the connection without a word.")


@dataclass(slots=True)
class PreparedStart:
    """Dev servers through the local adapter, one for each free GPU of the fleet in turn."""

    cluster: LocalCluster
    public_key: str
    _gpus: itertools.cycle[NodeName] = field(init=False)

    def __post_init__(self) -> None:
        nodes = [node for node in self.cluster.snapshot().nodes for _ in range(node.slots)]
        self._gpus = itertools.cycle([node.name for node in nodes])

    async def time_start(self) -> tuple[ReservationId, float]:
        spec = make_spec(next(self._gpus), self.public_key)
        began = time.perf_counter()
        await self.cluster.create_server(spec)
        address = self.cluster.snapshot().servers[spec.reservation_id].address
        assert address is not None
        reader, writer = await asyncio.open_connection(address.host, address.port)
        await reader.readexactly(1)
        seconds = time.perf_counter() - began
        writer.close()
        return spec.reservation_id, seconds

    async def end(self, reservation_id: ReservationId) -> None:
        server = self.cluster.snapshot().servers[reservation_id]
        await self.cluster.delete_server(reservation_id, server.uid)


@asynccontextmanager
async def prepared_starts(
    state_dir: Path, fleet_file: Path, isolation: Isolation
) -> AsyncIterator[PreparedStart]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    config = LocalClusterConfig(state_dir, load_fleet(str(fleet_file)), isolation)
    try:
        async with LocalCluster(config) as cluster:
            yield PreparedStart(cluster, make_public_key())
    finally:
        await asyncio.to_thread(stop_all_servers, state_dir)


@dataclass(frozen=True, slots=True)
class ColdStart:
    """One dev server at a time, by running its program."""

    state_dir: Path
    isolation: Isolation
    public_key: str

    def time_start(self) -> float:
        """Start it, wait for its first word, and end it again; the seconds up to that word."""
        began = time.perf_counter()
        try:
            self._start_and_hear()
            return time.perf_counter() - began
        finally:
            stop_all_servers(self.state_dir)

    def _start_and_hear(self) -> None:
        with bind_any_port() as listener:
            host, port = listener.getsockname()
            record = self._make_record(port)
            Records(self.state_dir).files_of(record.key).write_record(record)
            self._run_keeper(record, listener)
        read_first_byte(host, port)

    def _make_record(self, port: int) -> Record:
        key = asyncssh.generate_private_key("ssh-ed25519")
        return Record(
            spec=make_spec(NodeName("by-hand"), self.public_key),
            uid=str(uuid.uuid4()),
            is_placed=True,
            port=port,
            host_key=key.export_private_key().decode(),
            public_host_key=key.export_public_key().decode().strip(),
        )

    def _run_keeper(self, record: Record, listener: socket.socket) -> None:
        """The program goes to the background by itself, once it has read its order."""
        order = StartOrder(self.state_dir, record.key, self.isolation)
        status, their_status = os.pipe()
        descriptors = (listener.fileno(), their_status)
        arguments = [order.to_json(), *(str(descriptor) for descriptor in descriptors)]
        program = [sys.executable, "-P", "-m", "gpudev.adapters.local.devserver.keeper", *arguments]
        with os.fdopen(status, "rb") as says:
            try:
                subprocess.run(program, cwd="/", pass_fds=descriptors, start_new_session=True, check=True)
            finally:
                os.close(their_status)
            says.read()


def make_spec(node: NodeName, public_key: str) -> ServerSpec:
    reservation_id = ReservationId(str(uuid.uuid4()))
    return ServerSpec(
        reservation_id=reservation_id,
        reservation_name=f"bench-{reservation_id[:8]}",
        username="bench",
        nodes=(node,),
        gpu_type=node.rpartition("-")[0],
        gpu_count=1,
        share=Share(cpu_request=1, cpu_limit=1, memory_request_gib=1, memory_limit_gib=1),
        duration=timedelta(hours=1),
        ssh_public_keys=(public_key,),
        env_vars={},
    )
