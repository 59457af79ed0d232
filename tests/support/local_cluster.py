"""This machine as a cluster, for tests: real processes, real sandboxes, the real OpenSSH client."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest

from gpudev.adapters.local.cluster import LocalCluster
from gpudev.adapters.local.cluster_config import LocalClusterConfig
from gpudev.adapters.local.devserver import launcher
from gpudev.adapters.local.fleet import load_fleet
from gpudev.adapters.local.processes.identity import find_strays, holding
from gpudev.adapters.local.record import record_key
from gpudev.adapters.local.records import Records
from gpudev.adapters.local.sandbox.isolation import Isolation, find_program
from gpudev.adapters.local.server_processes import stop_all_servers
from gpudev.domain.catalogue import MAX_GANG_NODES, Share
from gpudev.domain.names import NodeName, ReservationId, member_name
from gpudev.domain.server import ObservedMember, ObservedServer, ServerPhase, ServerSpec, SshAddress
from gpudev.ports.cluster import Cluster
from tests.support.zygote import Forked, fork_dev_server_zygote, prepare_zygote

PATIENCE_SECONDS = 30
"""How long a test waits for what should take a moment, on a machine that may be busy."""

NODE = NodeName("t4-0")

_start_program = launcher._start_program


def _start_or_fork(
    module: str, arguments: list[str], descriptors: tuple[int, ...], log_path: Path
) -> subprocess.Popen[bytes] | Forked:
    """Fork zygotes from a process that has their imports: each test has a cluster, each cluster a zygote."""
    if module != "zygote":
        return _start_program(module, arguments, descriptors, log_path)
    environment = {name: os.environ[name] for name in launcher._KEPT_VARIABLES if name in os.environ}
    with log_path.open("ab") as log:
        return fork_dev_server_zygote(environment, descriptors[0], log.fileno())


launcher._start_program = _start_or_fork


@cache
def works_here(isolation: Isolation) -> bool:
    return isolation is Isolation.NONE or bool(_find_bubblewrap())


@cache
def _find_bubblewrap() -> str:
    return find_program().program


def need(isolation: Isolation) -> Isolation:
    """Skip, for a person to see, what cannot run here; fail where it is said that it must."""
    if not works_here(isolation):
        if isolation.value in os.environ.get("GPU_DEV_TEST_REQUIRE", ""):
            pytest.fail(f"{isolation.value} does not work here, and GPU_DEV_TEST_REQUIRE names it.")
        pytest.skip(f"{isolation.value} does not work here")
    return isolation


@dataclass(frozen=True, slots=True)
class Key:
    path: Path
    public: str


def make_key(directory: Path) -> Key:
    path = directory / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return Key(path, path.with_suffix(".pub").read_text().strip())


def make_spec(
    key: Key | None = None,
    *,
    gpus: int = 1,
    node: NodeName = NODE,
    nodes: tuple[NodeName, ...] = (),
    **env: str,
) -> ServerSpec:
    """On one node, or on several."""
    reservation_id = ReservationId(str(uuid.uuid4()))
    return ServerSpec(
        reservation_id=reservation_id,
        reservation_name=f"t4-{reservation_id[:8]}",
        username="ada",
        nodes=nodes or (node,),
        gpu_type=(nodes or (node,))[0].rpartition("-")[0],
        gpu_count=gpus,
        share=Share(cpu_request=1, cpu_limit=1, memory_request_gib=1, memory_limit_gib=1),
        duration=timedelta(hours=1),
        ssh_public_keys=(key.public,) if key else (),
        env_vars=env,
    )


def make_config(state_dir: Path, isolation: Isolation, *, fleet: str = "test") -> LocalClusterConfig:
    # Now, and not within the time that a test gives its first server.
    prepare_zygote()
    return LocalClusterConfig(state_dir, load_fleet(fleet), isolation, bubblewrap=_find_bubblewrap())


@asynccontextmanager
async def open_cluster(
    state_dir: Path, isolation: Isolation, *, fleet: str = "test"
) -> AsyncIterator[LocalCluster]:
    """A cluster that leaves no process behind."""
    try:
        async with LocalCluster(make_config(state_dir, isolation, fleet=fleet)) as cluster:
            yield cluster
    finally:
        await asyncio.to_thread(stop_all_servers, state_dir)


@asynccontextmanager
async def other_owner(
    state_dir: Path, isolation: Isolation, key: Key
) -> AsyncIterator[tuple[asyncio.subprocess.Process, ObservedServer]]:
    """Another process that owns the state directory, and the server that it has made ready."""
    program = ("-m", "tests.support.local_owner", state_dir, isolation, key.public)
    owner = await asyncio.create_subprocess_exec(sys.executable, *program, stdout=-1)
    try:
        reservation_id = ReservationId((await hear(owner, "\n")).strip())
        record = Records(state_dir).files_of(reservation_id[:8]).find_record()
        assert record is not None
        address = SshAddress("127.0.0.1", record.port)
        keys = (record.public_host_key,)
        member = ObservedMember(NODE, ServerPhase.READY, address=address, host_keys=keys)
        yield owner, ObservedServer(reservation_id, record.uid, (member,))
    finally:
        if owner.returncode is None:
            owner.kill()
            await owner.wait()
        await asyncio.to_thread(stop_all_servers, state_dir)


async def wait_until(
    cluster: Cluster, is_so: Callable[[ObservedServer | None], bool], reservation_id: ReservationId
) -> ObservedServer | None:
    """Wait for a condition on one server, woken by the cluster's own changes."""
    changes = cluster.changes()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_so(server := cluster.snapshot().servers.get(reservation_id)):
            await anext(changes)
    return server


async def wait_ready(cluster: Cluster, reservation_id: ReservationId) -> ObservedServer:
    server = await wait_until(
        cluster, lambda seen: seen is not None and seen.phase is ServerPhase.READY, reservation_id
    )
    assert server is not None
    return server


async def create_ready(cluster: Cluster, spec: ServerSpec) -> ObservedServer:
    await cluster.create_server(spec)
    return await wait_ready(cluster, spec.reservation_id)


def count_processes(reservation_id: ReservationId) -> int:
    """Live processes anywhere on the machine that carry the mark of the server, or of a member of it."""
    names = (member_name(reservation_id, rank) for rank in range(MAX_GANG_NODES))
    return sum(len(find_strays(name)) for name in names)


def free_slots(cluster: Cluster) -> dict[str, int]:
    return {node.name: node.free_slots for node in cluster.snapshot().nodes}


def kill_member(state_dir: Path, reservation_id: ReservationId, rank: int) -> None:
    processes = Records(state_dir).files_of(record_key(reservation_id[:8], rank)).find_processes()
    assert processes is not None
    with holding(processes.root) as root:
        assert root is not None
        root.send_signal(signal.SIGKILL)
        assert root.wait_blocking(PATIENCE_SECONDS)


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    err: str


class SshClient:
    """`ssh`, `scp` and `sftp` as a user has them, with strict host keys."""

    def __init__(self, server: ObservedServer, key: Key, directory: Path, rank: int = 0) -> None:
        member = server.members[rank]
        assert member.address is not None
        self._address = member.address
        self._key = key
        self.known_hosts = directory / f"known_hosts-{member_name(server.reservation_id, rank)}"
        host = f"[{member.address.host}]:{member.address.port}"
        self.known_hosts.write_text("".join(f"{host} {line}\n" for line in member.host_keys))

    @property
    def target(self) -> str:
        return f"dev@{self._address.host}"

    @property
    def options(self) -> list[str]:
        return [
            *("-F", "none", "-i", str(self._key.path), "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes"),
            *("-o", "StrictHostKeyChecking=yes", "-o", f"UserKnownHostsFile={self.known_hosts}"),
        ]

    @property
    def port(self) -> int:
        return self._address.port

    def command(self, remote: str | None, *options: str, user: str = "dev") -> list[str]:
        host = f"{user}@{self._address.host}"
        return ["ssh", *self.options, "-p", str(self.port), *options, host, *([remote] if remote else [])]

    async def run(self, remote: str, *options: str, stdin: bytes = b"", user: str = "dev") -> Done:
        return await run_program(*self.command(remote, *options, user=user), stdin=stdin)

    async def start(self, remote: str | None, *options: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self.command(remote, *options), stdin=-1, stdout=-1, stderr=asyncio.subprocess.STDOUT
        )

    async def start_shell(self) -> asyncio.subprocess.Process:
        """A login shell on a terminal."""
        return await self.start(None, "-tt")

    async def copy(self, program: str, *arguments: str, stdin: bytes = b"") -> Done:
        port = ("-P", str(self.port))
        return await run_program(program, *self.options, *port, *arguments, stdin=stdin)


async def run_program(*command: str, stdin: bytes = b"") -> Done:
    process = await asyncio.create_subprocess_exec(*command, stdin=-1, stdout=-1, stderr=-1)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            out, err = await process.communicate(stdin)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return Done(process.returncode, out.decode(), err.decode())


async def end_session(process: asyncio.subprocess.Process) -> int:
    """Wait for its end, which the end of its input may bring."""
    assert process.stdin is not None
    process.stdin.close()
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await process.wait()


async def say(process: asyncio.subprocess.Process, line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n".encode())
    await process.stdin.drain()


async def hear(process: asyncio.subprocess.Process, words: str) -> str:
    """What the process says up to and with these words."""
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE_SECONDS):
        return (await process.stdout.readuntil(words.encode())).decode()
