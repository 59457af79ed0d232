"""An embedded PostgreSQL under test: questions, waits for processes, and a parent that can be killed."""

from __future__ import annotations

import asyncio
import os
import select
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg

from gpudev.adapters.local.database.embedded_postgres import EmbeddedPostgres

DEADLINE_S = 30
PARENT = Path(__file__).parent / "postgres_parent.py"


async def start_and_stop(folder: Path) -> None:
    async with EmbeddedPostgres(folder):
        pass


async def query(dsn: str, statement: str) -> object:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110  # another process makes it true
            await asyncio.sleep(0.001)


def until_gone(pid: int) -> None:
    """Return when the process has ended, whoever its parent is."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            ended, _, _ = select.select([descriptor], [], [], DEADLINE_S)
        finally:
            os.close(descriptor)
        assert ended, f"process {pid} is still there"


@contextmanager
def parent_process(folder: Path, prefix: Sequence[str] = ()) -> Iterator[subprocess.Popen[str]]:
    """A process of its own that looks after a server, as `gpu-dev up` does; killed at the end."""
    command = [*prefix, sys.executable, os.fspath(PARENT), os.fspath(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        try:
            yield parent
        finally:
            parent.kill()


def ready_server_of(parent: subprocess.Popen[str]) -> int:
    assert parent.stdout is not None
    line = parent.stdout.readline()
    assert line, "the parent process ended before its server was ready"
    return int(line)


def owner(path: Path) -> int:
    return path.stat().st_uid


def is_private(folder: Path) -> bool:
    return owner(folder) == os.geteuid() and stat.S_IMODE(folder.stat().st_mode) == 0o700


def socket_folder_of(server: EmbeddedPostgres) -> Path:
    return Path(parse_qs(urlsplit(server.dsn).query)["host"][0])
