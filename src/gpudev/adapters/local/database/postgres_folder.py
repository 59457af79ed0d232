"""The folder of the embedded PostgreSQL: its layout, its locks, and its creation.

    <folder>/               0700
        data/               PostgreSQL's own; it appears complete or not at all
        data.new/           a first start that has not finished, or was killed: removed by the next one
        socket/             the unix socket, unless the path does not do for one (see `socket_folder`)
        pg_hba.conf         written at every start
        postgres.log        and postgres.log.1, the one before
        supervisor.lock     held by the process that looks after the server
        server.lock         held by the server's processes, down to the last one

The locks are `flock`s, which the kernel gives back when the holder dies, so neither a stale file nor a reused
process id can mislead us. A program that is exec'd does not inherit the supervisor's lock; a plain fork does.

The first start creates the data folder in a folder with another name that is renamed at the end, so a kill
at any moment leaves either no data folder or a complete one.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from gpudev.adapters.local.database.child_process import ChildProcess
from gpudev.adapters.local.database.postgres_programs import (
    ENVIRONMENT,
    Account,
    find_programs,
    initial_account,
)
from gpudev.domain.errors import Conflict, StoreUnavailable

SOCKET_PORT = 5432
# `sun_path` has 108 bytes with its final zero, and PostgreSQL puts the socket's name behind the folder.
_LONGEST_SOCKET_FOLDER = 107 - len("/.s.PGSQL.65535")
_REASON_LINES = 12
_STATUS_LINE = 7
_LOCAL_RULE = ("local", "all", "all", "trust")
_TCP_RULE = ("host", "all", "all", "all", "scram-sha-256")
_LOG_LIMIT_BYTES = 8 * 1024 * 1024
_LOCK_POLL = timedelta(milliseconds=10)
ROLE = "gpudev"
"""The owner of everything, as whom migrations connect."""
APP_ROLE = "gpudev_app"
"""As whom the service connects. Migrations make it."""
# The same order and the same upper case on every machine, whatever languages are installed there.
_LOCALE = ("--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
_ACCESS = ("--auth-local=trust", "--auth-host=scram-sha-256")


@dataclass(frozen=True, slots=True)
class PostgresFolder:
    path: Path
    short: Path
    """Where the socket goes when `path` does not do for one."""
    port: int = SOCKET_PORT
    """Part of the socket's name, whether or not anything listens on that port."""

    @property
    def data(self) -> Path:
        return self.path / "data"

    @property
    def new_data(self) -> Path:
        return self.path / "data.new"

    @property
    def log(self) -> Path:
        return self.path / "postgres.log"

    @property
    def access_rules(self) -> Path:
        return self.path / "pg_hba.conf"

    @property
    def process_file(self) -> Path:
        """PostgreSQL's own record of its main process; its last line says whether it accepts connections."""
        return self.data / "postmaster.pid"

    @property
    def socket_folder(self) -> Path:
        """The same one at every start: in this folder, or under a short name derived from its path."""
        beside = self.path / "socket"
        # A comma would begin the next one in a list of folders, in the server's settings and in addresses.
        if len(os.fsencode(beside)) <= _LONGEST_SOCKET_FOLDER and "," not in os.fspath(beside):
            return beside
        digest = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        return self.short / f"gpu-dev-{digest}"

    def take_supervisor_lock(self) -> int:
        """Make the folder if need be and lock it; a `Conflict` if another process looks after it.

        Returns the descriptor that holds the lock.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.path / "supervisor.lock", os.O_RDWR | os.O_CREAT, 0o600)
        if not _try_lock(descriptor):
            holder = os.pread(descriptor, 32, 0).decode()
            os.close(descriptor)
            raise Conflict("database_in_use", path=str(self.path), pid=holder or "unknown")
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        return descriptor

    async def take_server_lock(self, within: timedelta) -> int:
        """Wait until nothing is left of the server before: one whose supervisor was killed needs a moment."""
        with ExitStack() as undo:
            descriptor = os.open(self.path / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)
            undo.callback(os.close, descriptor)
            try:
                async with asyncio.timeout(within.total_seconds()):
                    while not _try_lock(descriptor):  # noqa: ASYNC110  # another process holds it
                        await asyncio.sleep(_LOCK_POLL.total_seconds())
            except TimeoutError as error:
                raise StoreUnavailable(
                    "postgres_not_ended", path=str(self.path), limit=str(within)
                ) from error
            undo.pop_all()
        return descriptor

    def prepare_socket_folder(self) -> Path:
        """The socket's folder: ours, private, and without what a killed server left in it."""
        folder = self.socket_folder
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        if not _is_private(folder):
            raise StoreUnavailable("folder_not_private", path=str(folder))
        _remove_sockets(folder)
        return folder

    def remove_socket_folder(self) -> None:
        """Leave nothing behind: it may lie outside of our own folder."""
        if _is_private(self.socket_folder):
            _remove_sockets(self.socket_folder)
            with contextlib.suppress(OSError):  # somebody put something there: it is not ours to remove
                self.socket_folder.rmdir()

    def write_access_rules(self, *, tcp: bool) -> None:
        rules = (_LOCAL_RULE, _TCP_RULE) if tcp else (_LOCAL_RULE,)
        self.access_rules.write_text("".join(f"{' '.join(rule)}\n" for rule in rules))

    def remove_stale_process_file(self) -> None:
        """Remove what a predecessor left: we hold the server's lock, so none of its processes is alive.

        PostgreSQL knows that less well. It stops at an empty file, left by a kill in the moment of its
        making, and takes any live process with that number for its predecessor; after a reboot or in a new
        container the same small numbers come again.
        """
        self.process_file.unlink(missing_ok=True)

    def says_ready(self, pid: int) -> bool:
        """Whether the server with this process id accepts connections; `pg_ctl` looks at the same lines."""
        try:
            lines = self.process_file.read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > _STATUS_LINE and lines[0] == str(pid) and lines[_STATUS_LINE].strip() == "ready"

    def rotate_log(self) -> int:
        """Begin a new log if the old one is long. Returns the mark from which `log_since` reads."""
        if self.log_size() > _LOG_LIMIT_BYTES:
            self.log.replace(self.log.with_name(f"{self.log.name}.1"))
        return self.log_size()

    def log_size(self) -> int:
        return self.log.stat().st_size if self.log.exists() else 0

    def log_since(self, mark: int) -> str:
        """The last lines written since then, if any: why something did not work."""
        with self.log.open("rb") as log:
            log.seek(mark)
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-_REASON_LINES:])


def _is_private(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def _remove_sockets(folder: Path) -> None:
    for leftover in folder.glob(".s.PGSQL.*"):
        leftover.unlink()


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def make_data(folder: PostgresFolder, account: Account, lock: int, *, durable: bool) -> None:
    """Make `folder.data` for `account`. `lock` is kept by the programs while they run."""
    new = folder.new_data
    if new.exists():
        shutil.rmtree(new)
    new.mkdir(mode=0o700)
    maker = initial_account(account)
    maker.own(new)
    sync = () if durable else ("--no-sync",)
    command = (
        "initdb",
        f"--pgdata={new}",
        f"--username={ROLE}",
        *_LOCALE,
        *_ACCESS,
        *sync,
        "--no-instructions",
    )
    await _run(folder, maker, command, lock)
    if maker != account:
        account.own_tree(new)
    new.rename(folder.data)
    if durable:
        _sync(folder.path)


async def _run(folder: PostgresFolder, account: Account, command: tuple[str, ...], lock: int) -> None:
    program, *arguments = command
    mark = folder.log_size()
    with folder.log.open("ab") as log:
        child = ChildProcess(
            [os.fspath(find_programs() / program), *arguments],
            prefix=account.prefix,
            output=log,
            environment=ENVIRONMENT,
            inherit=(lock,),
        )
    async with child:
        status = await child.wait()
    if status != 0:
        raise StoreUnavailable(
            "database_not_made",
            program=program,
            status=status,
            words=folder.log_since(mark),
            log=str(folder.log),
        )


def _sync(folder: Path) -> None:
    """Make the rename survive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
