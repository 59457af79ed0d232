"""The folder of the embedded PostgreSQL: whose it is, what may lie in it, and that nothing stays behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpudev.adapters.local.database.embedded_postgres import EmbeddedPostgres, PostgresOptions
from gpudev.adapters.local.database.postgres_programs import choose_account
from gpudev.domain.errors import Conflict, StoreUnavailable
from tests.support.postgres_process import (
    is_private,
    owner,
    parent_process,
    query,
    ready_server_of,
    socket_folder_of,
    start_and_stop,
    until,
    until_gone,
)

pytestmark = pytest.mark.anyio

ONLY_AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may choose another user to run as")


def exists(path: Path) -> bool:
    return path.exists()


async def test_nobody_else_can_reach_the_socket(folder: Path) -> None:
    async with EmbeddedPostgres(folder) as server:
        socket_folder = socket_folder_of(server)
        assert is_private(socket_folder)


async def test_a_first_start_that_is_killed_leaves_nothing_half_made(new_folder: Path) -> None:
    with parent_process(new_folder) as parent:
        await until((new_folder / "data.new" / "base").exists)
        parent.kill()
    async with EmbeddedPostgres(new_folder) as server:
        assert await query(server.dsn, "SELECT 1") == 1
    assert not (new_folder / "data.new").exists()


async def test_a_deep_folder_gets_a_short_socket_that_goes_away_with_the_server(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["a-rather-long-name-for-a-folder"] * 5)
    async with EmbeddedPostgres(deep) as server:
        socket_folder = socket_folder_of(server)
        assert is_private(socket_folder)
    assert not exists(socket_folder)


async def test_a_socket_folder_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["a-rather-long-name-for-a-folder"] * 5)
    server = EmbeddedPostgres(deep, PostgresOptions(short_folder=tmp_path))
    socket_folder_of(server).mkdir(mode=0o755)
    with pytest.raises(StoreUnavailable, match="not a private folder of ours"):
        await server.start()
    assert socket_folder_of(server).exists()


async def test_a_folder_that_this_process_uses_already_is_refused(folder: Path) -> None:
    async with EmbeddedPostgres(folder) as server:
        with pytest.raises(Conflict, match=f"already in use by process {os.getpid()}"):
            await EmbeddedPostgres(folder).start()
        assert await query(server.dsn, "SELECT 1") == 1


async def test_a_folder_that_another_process_uses_is_refused(folder: Path) -> None:
    with parent_process(folder) as parent:
        pid = ready_server_of(parent)
        with pytest.raises(Conflict, match=f"already in use by process {parent.pid}"):
            await EmbeddedPostgres(folder).start()
        parent.kill()
        until_gone(pid)


@pytest.mark.parametrize("name", ['5 % of "it\'s" ü + &', "one, two"])
async def test_a_folder_may_have_any_name(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    folder = tmp_path_factory.mktemp("x") / name  # a short path, so that the socket is in it
    async with EmbeddedPostgres(folder, PostgresOptions(durable=False)) as server:
        assert await query(server.dsn, "SELECT 1") == 1


async def test_an_empty_process_file_is_survived(folder: Path) -> None:
    (folder / "data" / "postmaster.pid").touch()
    async with EmbeddedPostgres(folder) as server:
        assert await query(server.dsn, "SELECT 1") == 1


@contextmanager
def stranger() -> Iterator[int]:
    """The process id of a program that has nothing to do with us."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as program:
        yield program.pid


async def test_a_process_file_whose_number_is_now_another_programs_is_survived(folder: Path) -> None:
    async with EmbeddedPostgres(folder) as server:
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        await server.wait()
        process_file = folder / "data" / "postmaster.pid"
        with stranger() as pid:
            _, *rest = process_file.read_text().splitlines(keepends=True)
            process_file.write_text("".join([f"{pid}\n", *rest]))
            await server.start()
            assert await query(server.dsn, "SELECT 1") == 1


async def test_a_long_log_is_put_aside(folder: Path) -> None:
    (folder / "postgres.log").write_bytes(b"x" * 9_000_000)
    await start_and_stop(folder)
    assert (folder / "postgres.log.1").read_bytes() == b"x" * 9_000_000
    assert "ready to accept connections" in (folder / "postgres.log").read_text()


@pytest.fixture
def path_without_unshare(tmp_path: Path) -> Path:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("setpriv", "true"):
        (tools / name).symlink_to(str(shutil.which(name)))
    return tools


@ONLY_AS_ROOT
async def test_root_without_user_namespaces_runs_it_as_a_user_of_its_own(
    new_folder: Path, path_without_unshare: Path
) -> None:
    with parent_process(new_folder, ["env", f"PATH={path_without_unshare}"]) as parent:
        pid = ready_server_of(parent)
        user = owner(Path("/proc", str(pid)))
        parent.kill()
        until_gone(pid)
    assert user not in {0, 65534}
    assert owner(new_folder / "data" / "base") == user
    async with EmbeddedPostgres(new_folder) as server:
        assert await query(server.dsn, "SELECT 1") == 1
        assert owner(Path("/proc", str(server.pid))) == user


@pytest.fixture
def folder_of_another_user(tmp_path: Path) -> Path:
    if os.geteuid() != 0:
        return Path("/usr")
    os.chown(tmp_path, 12345, 12345)
    return tmp_path


def test_a_database_of_another_user_is_refused(folder_of_another_user: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"belongs to user \d+, not to \d+"):
        choose_account(folder_of_another_user)
