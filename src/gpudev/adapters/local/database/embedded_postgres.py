"""PostgreSQL as a child of ours: no installation, no service, no port, nothing left behind.

`start` makes the database on first use, starts the server and returns once it accepts connections. The server
ends with us: `stop` asks it to, and if we are killed the kernel does. When the server itself is killed,
`wait` returns and `start` brings it back with everything that was committed; `supervise` does just that.

Who may connect: whoever can reach the unix socket, which lies in a folder that only our user can enter. Rules
by user (`peer`) would add nothing: seen from a user namespace every foreign user is `nobody`, the very name
that we have there ourselves. Over TCP, which is off by default, a password is asked (SCRAM).
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Self
from urllib.parse import quote, urlencode

import asyncpg
import structlog

from gpudev.adapters.local.database.child_process import ChildProcess
from gpudev.adapters.local.database.postgres_folder import (
    APP_ROLE,
    ROLE,
    SOCKET_PORT,
    PostgresFolder,
    make_data,
)
from gpudev.adapters.local.database.postgres_programs import (
    ENVIRONMENT,
    Account,
    choose_account,
    find_programs,
)
from gpudev.domain.errors import GpuDevError, StoreUnavailable
from gpudev.texts.fact import Fact, fact

_log = structlog.get_logger(__name__)

_DATABASE = "postgres"  # made with every data folder; the server is ours alone, so no other is needed
_READY_POLL = timedelta(milliseconds=5)
_SHORT_LIFE = timedelta(seconds=10)
_FIRST_PAUSE = timedelta(milliseconds=100)
_LONGEST_PAUSE = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class TcpAccess:
    """Connections over the network with a password, besides the unix socket."""

    host: str
    port: int
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class PostgresOptions:
    max_connections: int = 100
    shared_buffers: str = "64MB"
    durable: bool = True
    """Whether what was committed survives a loss of power. Off for tests only."""
    tcp: TcpAccess | None = None
    start_within: timedelta = timedelta(seconds=60)
    """How long each may take: the end of a predecessor, and the start with the recovery after a crash."""
    stop_within: timedelta = timedelta(seconds=20)
    short_folder: Path = Path("/tmp")  # noqa: S108  # what is made there is private, see PostgresFolder
    """Where the socket goes when the path of the folder does not do for one."""

    def settings(self) -> dict[str, str]:
        """PostgreSQL's own settings; the names are those of its manual."""
        on = "on" if self.durable else "off"
        return {
            "listen_addresses": self.tcp.host if self.tcp else "",
            "port": str(self.tcp.port if self.tcp else SOCKET_PORT),
            "max_connections": str(self.max_connections),
            "shared_buffers": self.shared_buffers,
            "fsync": on,
            "full_page_writes": on,
            "synchronous_commit": on,
            "unix_socket_permissions": "0700",
            # A small database lives in memory: processes for its reads would only be more processes.
            "io_method": "sync",
            "log_checkpoints": "off",
            "log_timezone": "UTC",
            "timezone": "UTC",
        }


class EmbeddedPostgres:
    """One server on one folder. Use it from one thread, the main one: the server ends with that thread."""

    def __init__(self, folder: Path, options: PostgresOptions | None = None) -> None:
        self._options = options or PostgresOptions()
        port = self._options.tcp.port if self._options.tcp else SOCKET_PORT
        self._folder = PostgresFolder(folder.absolute(), self._options.short_folder, port)
        self._supervisor_lock: int | None = None
        self._is_wanted = False
        self._server: ChildProcess | None = None
        self._turn = asyncio.Lock()

    @property
    def dsn(self) -> str:
        """The address, over the unix socket; it is the same after every start."""
        return self.dsn_of(_DATABASE)

    @property
    def app_dsn(self) -> str:
        """The same for the role that owns nothing."""
        return self.dsn_of(_DATABASE, APP_ROLE)

    def dsn_of(self, database: str, role: str = ROLE) -> str:
        """The address of another database of the same server."""
        socket = {"host": os.fspath(self._folder.socket_folder), "port": self._folder.port}
        return f"postgresql://{role}@/{quote(database)}?{urlencode(socket, quote_via=quote)}"

    @property
    def pid(self) -> int | None:
        """The server's main process; None when it does not run."""
        return self._server.pid if self._server and self._server.exit_status is None else None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Return once the server accepts connections; at once if it does already.

        Raises `Conflict` if another process looks after this folder, `StoreUnavailable` if it does not start.
        """
        async with self._turn:
            await self._start()
            self._is_wanted = True

    async def stop(self) -> None:
        """End all sessions and the server, and give the folder back. Stopping twice is fine."""
        self._is_wanted = False
        async with self._turn:
            await self._stop()

    async def wait(self) -> int | None:
        """The exit status once the server has ended, by `stop` or by itself; None if none was started."""
        return await self._server.wait() if self._server else None

    async def supervise(self) -> None:
        """Start the server again whenever it ends by itself; return after `stop`.

        A server that keeps ending at once is given longer and longer pauses, and one that cannot be started,
        for want of disk or memory say, is tried again.
        """
        clock = asyncio.get_running_loop().time
        pause = timedelta()
        while self._is_wanted:
            since = clock()
            await self.wait()
            short_lived = clock() - since < _SHORT_LIFE.total_seconds()
            await asyncio.sleep(pause.total_seconds() if short_lived else 0)
            pause = min(max(pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE) if short_lived else timedelta()
            async with self._turn:
                if self._is_wanted:
                    await self._start_again()

    async def _start_again(self) -> None:
        try:
            await self._start()
        except (OSError, GpuDevError) as error:
            _log.warning("database_not_started", error=str(error))

    async def _start(self) -> None:
        if self.pid is not None:
            return
        async with AsyncExitStack() as undo:
            if self._supervisor_lock is None:
                self._supervisor_lock = self._folder.take_supervisor_lock()
            undo.push_async_callback(self._stop)
            server_lock = await self._folder.take_server_lock(self._options.start_within)
            try:
                account = choose_account(self._folder.data)
                if not self._folder.data.exists():
                    await make_data(self._folder, account, server_lock, durable=self._options.durable)
                mark = self._folder.rotate_log()
                self._server = self._spawn(account, server_lock)
            finally:
                os.close(server_lock)  # from here on the server's own processes hold it
            await self._until_ready(self._server, mark)
            await self._set_password()
            undo.pop_all()

    async def _stop(self) -> None:
        if self._server is not None:
            await self._server.end(signal.SIGINT, signal.SIGQUIT, within=self._options.stop_within)
        if self._supervisor_lock is not None:
            self._folder.remove_socket_folder()
            os.close(self._supervisor_lock)
            self._supervisor_lock = None

    def _spawn(self, account: Account, server_lock: int) -> ChildProcess:
        folder = self._folder
        folder.write_access_rules(tcp=self._options.tcp is not None)
        folder.remove_stale_process_file()
        settings = self._options.settings() | {
            "unix_socket_directories": os.fspath(folder.prepare_socket_folder()),
            "hba_file": os.fspath(folder.access_rules),
        }
        arguments = [f"--{name}={value}" for name, value in settings.items()]
        with folder.log.open("ab") as log:
            return ChildProcess(
                [os.fspath(find_programs() / "postgres"), "-D", os.fspath(folder.data), *arguments],
                prefix=account.prefix,
                output=log,
                environment=ENVIRONMENT,
                inherit=(server_lock,),
            )

    async def _until_ready(self, server: ChildProcess, mark: int) -> None:
        try:
            async with asyncio.timeout(self._options.start_within.total_seconds()):
                while not self._folder.says_ready(server.pid):
                    if server.exit_status is not None:
                        raise self._failure(fact("postgres_ended", status=server.exit_status), mark)
                    await asyncio.sleep(_READY_POLL.total_seconds())
        except TimeoutError as error:
            what = fact("postgres_not_ready", limit=str(self._options.start_within))
            raise self._failure(what, mark) from error

    def _failure(self, what: Fact, mark: int) -> StoreUnavailable:
        folder = self._folder
        return StoreUnavailable(
            "postgres_failed",
            path=str(folder.path),
            what=what,
            words=folder.log_since(mark),
            log=str(folder.log),
        )

    async def _set_password(self) -> None:
        if self._options.tcp is None:
            return
        connection = await asyncpg.connect(self.dsn)
        try:
            # ALTER ROLE takes no parameters: the server itself quotes the password into the statement.
            statement = await connection.fetchval(
                "SELECT format('ALTER ROLE %I PASSWORD %L', $1::text, $2::text)",
                ROLE,
                self._options.tcp.password,
            )
            await connection.execute(statement)
        finally:
            await connection.close()
