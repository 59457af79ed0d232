"""The embedded PostgreSQL: it starts, it comes back, it loses nothing and it leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from gpudev.adapters.local.database.embedded_postgres import EmbeddedPostgres, PostgresOptions, TcpAccess
from gpudev.adapters.local.database.postgres_programs import choose_account
from gpudev.domain.errors import Conflict, StoreUnavailable

pytestmark = pytest.mark.anyio

DEADLINE_S = 30
# What asyncpg raises when the server goes away, depending on what it was doing; the last is its own slip.
BROKEN = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, asyncpg.InternalClientError)
PARENT = Path(__file__).parents[1] / "support" / "postgres_parent.py"
ONLY_AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may choose another user to run as")


@pytest.fixture
def new_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for a first start."""
    yield tmp_path / "postgres"
    shutil.rmtree(tmp_path / "postgres")


@pytest.fixture(scope="module")
def used_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("used") / "postgres"
    asyncio.run(start_and_stop(folder))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def folder(tmp_path: Path, used_folder: Path) -> Iterator[Path]:
    """A folder that a server has run in before: copying one takes half the time of making one."""
    folder = tmp_path / "postgres"
    shutil.copytree(used_folder, folder)
    yield folder
    shutil.rmtree(folder)


async def start_and_stop(folder: Path) -> None:
    async with EmbeddedPostgres(folder):
        pass


def exists(path: Path) -> bool:
    return path.exists()


def owner(path: Path) -> int:
    return path.stat().st_uid


def is_private(folder: Path) -> bool:
    return owner(folder) == os.geteuid() and stat.S_IMODE(folder.stat().st_mode) == 0o700


def socket_folder_of(server: EmbeddedPostgres) -> Path:
    return Path(parse_qs(urlsplit(server.dsn).query)["host"][0])


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


async def test_the_first_start_makes_a_private_database_that_answers(new_folder: Path) -> None:
    async with EmbeddedPostgres(new_folder) as server:
        assert await query(server.dsn, "SELECT 'ready'") == "ready"
        assert await query(server.dsn, "SHOW fsync") == "on"
    assert is_private(new_folder)
    assert is_private(new_folder / "data")


async def test_it_listens_on_no_network_port(folder: Path) -> None:
    async with EmbeddedPostgres(folder) as server:
        assert await query(server.dsn, "SHOW listen_addresses") == ""


async def test_nobody_else_can_reach_the_socket(folder: Path) -> None:
    async with EmbeddedPostgres(folder) as server:
        socket_folder = socket_folder_of(server)
        assert is_private(socket_folder)


async def test_text_is_utf8_and_sorted_the_same_on_every_machine(folder: Path) -> None:
    async with EmbeddedPostgres(folder) as server:
        assert await query(
            server.dsn, "SELECT string_agg(x, '' ORDER BY x) FROM unnest('{b,ä,B,a}'::text[]) x"
        ) == ("Babä")
        assert await query(server.dsn, "SELECT upper('ä')") == "Ä"


async def test_a_later_start_finds_what_was_written(folder: Path) -> None:
    async with EmbeddedPostgres(folder) as server:
        await query(server.dsn, "CREATE TABLE kept AS SELECT 42 AS answer")
    async with EmbeddedPostgres(folder) as server:
        assert await query(server.dsn, "SELECT answer FROM kept") == 42


async def test_the_address_is_the_same_after_every_start(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    async with server:
        address = server.dsn
    async with server:
        assert server.dsn == address == EmbeddedPostgres(folder).dsn


async def test_starting_a_running_server_changes_nothing(folder: Path) -> None:
    async with EmbeddedPostgres(folder) as server:
        pid = server.pid
        await server.start()
        assert server.pid == pid


async def test_stop_ends_the_server_with_its_sessions(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    await server.start()
    session = await asyncpg.connect(server.dsn)
    pid = server.pid
    await server.stop()
    assert pid is not None
    until_gone(pid)
    assert server.pid is None
    with pytest.raises(BROKEN):
        await session.fetchval("SELECT 1")
    session.terminate()


async def test_stopping_twice_or_before_the_start_is_fine(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    await server.stop()
    await server.start()
    await server.stop()
    await server.stop()


async def test_wait_tells_that_the_server_was_killed(folder: Path) -> None:
    async with EmbeddedPostgres(folder) as server:
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        assert await server.wait() == -signal.SIGKILL
        assert server.pid is None


async def test_a_server_killed_during_writes_comes_back_with_all_that_was_committed(folder: Path) -> None:
    async with EmbeddedPostgres(folder) as server:
        await query(server.dsn, "CREATE TABLE written (number integer PRIMARY KEY)")
        committed: list[int] = []
        writer = asyncio.create_task(write_until_it_breaks(server.dsn, committed))
        await until(lambda: len(committed) > 100)
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        await writer
        await server.wait()

        await server.start()
        found = await query(server.dsn, "SELECT array_agg(number) FROM written")
        assert isinstance(found, list)
        assert set(committed) <= set(found)


async def write_until_it_breaks(dsn: str, committed: list[int]) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        for number in range(1_000_000):
            await connection.execute("INSERT INTO written VALUES ($1)", number)
            committed.append(number)
    except BROKEN:
        connection.terminate()


async def test_a_supervised_server_is_started_again_until_it_is_stopped(folder: Path) -> None:
    async with EmbeddedPostgres(folder) as server:
        supervision = asyncio.create_task(server.supervise())
        for _ in range(2):
            killed = server.pid
            assert killed is not None
            os.kill(killed, signal.SIGKILL)
            await until(lambda killed=killed: server.pid not in {None, killed})  # type: ignore[misc]
            await server.start()  # waits its turn behind the start in progress
            assert await query(server.dsn, "SELECT 1") == 1
        await server.stop()
        async with asyncio.timeout(DEADLINE_S):
            await supervision


def read_log(folder: Path) -> str:
    return (folder / "postgres.log").read_text()


def move(file: Path, target: Path) -> Path:
    return file.rename(target)


async def test_a_supervised_server_that_cannot_start_for_a_while_is_tried_again(folder: Path) -> None:
    """A disk that is full, say; here a file is missing until somebody puts it back."""
    async with EmbeddedPostgres(folder) as server:
        supervision = asyncio.create_task(server.supervise())
        needed = folder / "data" / "PG_VERSION"
        aside = move(needed, folder / "aside")
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        await until(lambda: "PG_VERSION" in read_log(folder))
        move(aside, needed)
        await until(lambda: server.pid is not None)
        await server.start()
        assert await query(server.dsn, "SELECT 1") == 1
        await server.stop()
        async with asyncio.timeout(DEADLINE_S):
            await supervision


async def test_the_server_ends_when_its_parent_is_killed_and_the_next_start_works(folder: Path) -> None:
    with parent_process(folder) as parent:
        pid = ready_server_of(parent)
        parent.kill()
        until_gone(pid)
    async with EmbeddedPostgres(folder) as server:
        assert await query(server.dsn, "SELECT 1") == 1


async def test_a_start_waits_for_the_server_of_a_killed_parent(folder: Path) -> None:
    with parent_process(folder) as parent:
        pid = ready_server_of(parent)
        os.kill(pid, signal.SIGSTOP)  # it cannot shut down yet, as if it had much to write
        parent.kill()
        parent.wait()
        server = EmbeddedPostgres(folder)
        start = asyncio.create_task(server.start())
        try:
            done, _ = await asyncio.wait({start}, timeout=0.2)
            assert not done
        finally:
            os.kill(pid, signal.SIGCONT)
        await start
        assert await query(server.dsn, "SELECT 1") == 1
        await server.stop()


async def test_a_first_start_that_is_killed_leaves_nothing_half_made(new_folder: Path) -> None:
    with parent_process(new_folder) as parent:
        await until((new_folder / "data.new" / "base").exists)
        parent.kill()
    async with EmbeddedPostgres(new_folder) as server:
        assert await query(server.dsn, "SELECT 1") == 1
    assert not (new_folder / "data.new").exists()


async def test_a_start_that_is_cancelled_leaves_nothing_running(new_folder: Path) -> None:
    server = EmbeddedPostgres(new_folder)
    start = asyncio.create_task(server.start())
    await until(new_folder.exists)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert server.pid is None
    async with server:
        assert await query(server.dsn, "SELECT 1") == 1


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


async def test_a_start_that_fails_says_what_postgresql_said(folder: Path) -> None:
    (folder / "data" / "PG_VERSION").write_text("9.6\n")
    server = EmbeddedPostgres(folder)
    with pytest.raises(StoreUnavailable, match="database files are incompatible with server") as failure:
        await server.start()
    assert "postgres.log" in failure.value.hint
    assert server.pid is None


async def test_a_long_log_is_put_aside(folder: Path) -> None:
    (folder / "postgres.log").write_bytes(b"x" * 9_000_000)
    await start_and_stop(folder)
    assert (folder / "postgres.log.1").read_bytes() == b"x" * 9_000_000
    assert "ready to accept connections" in (folder / "postgres.log").read_text()


async def test_over_tcp_a_password_is_asked(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    tcp = TcpAccess("127.0.0.1", port, password="it's a 'secret'")
    async with EmbeddedPostgres(folder, PostgresOptions(tcp=tcp)) as server:
        assert await query(server.dsn, "SELECT 1") == 1
        session = await asyncpg.connect(
            host=tcp.host, port=port, user="gpudev", database="postgres", password=tcp.password
        )
        await session.close()
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(
                host=tcp.host, port=port, user="gpudev", database="postgres", password="wrong"
            )


def test_the_password_is_not_shown() -> None:
    assert "secret" not in repr(PostgresOptions(tcp=TcpAccess("localhost", 5432, "secret")))


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
