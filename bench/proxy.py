"""What the SSH proxy costs: the speed of a copy, and the API's answers beside idle tunnels."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import asyncpg
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from bench import cpu
from bench.api import running_api, running_postgres
from bench.api_data import KEY, Data, fill
from bench.load import Order, run_load
from bench.machine import Machine, running_machine
from bench.page import Section
from bench.proxy_findings import QUICK, Answers, Copies, Copy, Effort, report_answers, report_copies
from gpudev.adapters.local.records import ServerFiles
from gpudev.adapters.local.sandbox.isolation import probe_isolation
from gpudev.adapters.local.supervisor import ENVIRONMENT_NAME, ReadyPipe
from gpudev.wire.tunnel import SUBPROTOCOL, tunnel_path

TITLE = "The SSH proxy"
COMMAND = "python -m bench proxy"
_DEADLINE_SECONDS = 300
_ADD_ACTIVE = """
WITH added AS (
    INSERT INTO reservation_records (
        reservation_id, user_id, name, gpu_type, gpu_count, duration, created_at, status, detail, placed_at,
        launched_at, expires_at, last_updated)
    SELECT gen_random_uuid(), $1, 'tunnelled', 't4', 1, interval '1 hour', now(), 'active',
           '{"key": "server_answers"}', now(), now(), now() + interval '1 hour', now()
    RETURNING reservation_id
), set_up AS (
    INSERT INTO reservation_settings SELECT reservation_id, '', '{}', ARRAY['key'], '', '' FROM added
)
INSERT INTO reservation_members
SELECT reservation_id, 0, 't4-0', '127.0.0.1', $2, ARRAY['key'] FROM added
RETURNING reservation_id
"""


def measure(quick: bool = False) -> Section:  # noqa: FBT001, FBT002 - one switch, the same for every benchmark
    effort = QUICK if quick else Effort()
    copies = _measure_copies(effort)
    answers = _measure_answers(effort)
    body = f"{report_copies(copies, effort)}\n\n{report_answers(answers, effort)}"
    return Section(TITLE, COMMAND, body)


def _measure_copies(effort: Effort) -> dict[str, Copies]:
    settings = {"GPU_DEV_SSH_PROXY_PORT": str(_free_port())}
    with running_machine(probe_isolation(), settings) as machine:
        copying = _Copying(machine, machine.reserve(), effort)
        copying.file.write_bytes(os.urandom(effort.mebibytes << 20))
        found = {"up": Copies(), "down": Copies()}
        for _ in range(effort.copies):
            for direction, copies in found.items():
                copies.direct.append(copying.run(direction, is_direct=True))
                copies.proxied.append(copying.run(direction, is_direct=False))
        return found


@dataclass(frozen=True, slots=True)
class _Copying:
    machine: Machine
    reservation: str
    effort: Effort

    @property
    def file(self) -> Path:
        return self.machine.home / "copied"

    def run(self, direction: str, *, is_direct: bool) -> Copy:
        config = self.machine.home / ".gpu-dev" / f"{self.reservation[:8]}-sshconfig"
        there = f"gpu-dev-{self.reservation[:8]}:copied"
        ends = [str(self.file), there] if direction == "up" else [there, str(self.file)]
        straight = ["-o", "ProxyCommand=none"] if is_direct else []
        before = self._cpu_seconds()
        began = time.perf_counter()
        copy = subprocess.Popen(["scp", "-q", "-F", config, *straight, *ends], env=self.machine.environment)
        _, status, usage = os.wait4(copy.pid, 0)
        elapsed = time.perf_counter() - began
        copy.returncode = os.waitstatus_to_exitcode(status)
        if copy.returncode != 0:
            raise RuntimeError(f"scp ended with {copy.returncode}.")
        after = self._cpu_seconds()
        client = usage.ru_utime + usage.ru_stime
        return Copy(elapsed, client, *(late - early for early, late in zip(before, after, strict=True)))

    def _cpu_seconds(self) -> tuple[float, float]:
        """Of the proxy, and of the dev server, up to now."""
        files = ServerFiles(self.machine.home / "state" / "servers" / self.reservation[:8])
        processes = files.find_processes()
        if processes is None:
            raise RuntimeError("The dev server has no processes.")
        return cpu.of_process(self.machine.find_process("ssh-proxy")), cpu.of_process(
            processes.ssh_server.pid
        )


def _measure_answers(effort: Effort) -> dict[str, Answers]:
    with (
        TemporaryDirectory(prefix="gpu-dev-bench-") as folder,
        running_postgres(Path(folder)) as dsn,
        socket.create_server(("127.0.0.1", 0), backlog=1024) as server,
    ):
        data = asyncio.run(fill(dsn))
        reservation = asyncio.run(_add_active(data, server.getsockname()[1]))
        with running_api(dsn, effort.workers) as api, _running_proxy(dsn, effort.tunnels) as port:
            tunnels = _Tunnels(port, reservation, effort.tunnels)
            return asyncio.run(_compare(api, data, tunnels, effort))


async def _compare(api: tuple[str, int], data: Data, tunnels: _Tunnels, effort: Effort) -> dict[str, Answers]:
    asked = {"get": f"/v1/jobs/{data.job_id}", "list": "/v1/jobs", "availability": "/v1/gpu/availability"}
    orders = {name: _order(api, path, effort) for name, path in asked.items()}
    found = {name: Answers() for name in orders}
    for order in orders.values():
        await asyncio.to_thread(run_load, order)  # To warm up.
    for _ in range(effort.rounds):
        for name, order in orders.items():
            found[name].without += (await asyncio.to_thread(run_load, order)).latencies
        async with tunnels.open():
            for name, order in orders.items():
                found[name].beside += (await asyncio.to_thread(run_load, order)).latencies
    return found


def _order(api: tuple[str, int], path: str, effort: Effort) -> Order:
    host, port = api
    headers = {"Authorization": f"Bearer {KEY}"}
    return Order(host, port, "GET", path, headers, "", effort.connections, effort.seconds)


@dataclass(frozen=True, slots=True)
class _Tunnels:
    port: int
    reservation: str
    count: int

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for _ in range(self.count):
                await stack.enter_async_context(
                    connect(
                        f"ws://127.0.0.1:{self.port}{tunnel_path(self.reservation, 0)}",
                        additional_headers={"Authorization": f"Bearer {KEY}"},
                        subprotocols=[Subprotocol(SUBPROTOCOL)],
                        compression=None,
                    )
                )
            yield


async def _add_active(data: Data, port: int) -> str:
    connection = await asyncpg.connect(data.dsn)
    try:
        return str(await connection.fetchval(_ADD_ACTIVE, data.user_id, port))
    finally:
        await connection.close()


@contextmanager
def _running_proxy(dsn: str, tunnels: int) -> Iterator[int]:
    port, ready = _free_port(), ReadyPipe.open()
    settings = {
        "GPU_DEV_DATABASE_URL": dsn,
        "GPU_DEV_REQUESTS_PER_SECOND": "0",
        "GPU_DEV_SSH_PROXY_PORT": str(port),
        "GPU_DEV_SSH_PROXY_TUNNELS_PER_USER": str(2 * tunnels),
        ENVIRONMENT_NAME: str(ready.write_end),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "gpudev.cli.main", "server", "ssh-proxy"],
        env={**os.environ, **settings},
        pass_fds=(ready.write_end,),
    )
    try:
        ready.close_write_end()
        if not ready.read():
            raise RuntimeError("The proxy did not start.")
        yield port
    finally:
        process.terminate()
        process.wait(_DEADLINE_SECONDS)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])
