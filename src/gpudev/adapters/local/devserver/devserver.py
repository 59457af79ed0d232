"""The SSH server of one dev server. It runs inside the sandbox, as the user one logs in as.

Keys only. Shells, commands, copies and forwards all run in the same sandbox, since this process
starts them all. Its version line ends in its record's key, so whoever connects can tell which dev
server answers.

A session is a login shell or a command, on a terminal or on pipes. It behaves as in OpenSSH's server: exact
exit codes and signals, standard error kept apart, a hang-up when the client goes away, and commands on pipes
that last until their output is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncssh
from typing_extensions import override

from gpudev.adapters.local.cgroups import Limits
from gpudev.adapters.local.devserver.environment import Account
from gpudev.adapters.local.devserver.login import (
    Login,
    Program,
    TerminalRequest,
    start_on_pipes,
    start_on_terminal,
)
from gpudev.adapters.local.processes.descriptors import read_some, write_all
from gpudev.domain.server import LOGIN
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say

_NOT_STARTED = 255
_READ_SIZE = 64 * 1024
_SECONDS_FOR_LAST_OUTPUT = 0.5
"""After a shell on a terminal: a background job may keep the terminal open for ever."""
_CLIENT_VARIABLES = ("LANG", "LC_", "TZ", "COLORTERM", "TERM_PROGRAM")
_log = logging.getLogger(__name__)

_WINDOW = 4 * 1024 * 1024
_PACKET = 64 * 1024
_KEEPALIVE_SECONDS = 30
_KEEPALIVES_MISSED = 4
_LOGIN_SECONDS = 60


@dataclass(frozen=True, slots=True)
class SessionSettings:
    account: Account
    environment: Mapping[str, str]
    greeting: str


class Session:
    """Joins one channel of a connection with one process."""

    def __init__(
        self,
        settings: SessionSettings,
        stdin: asyncssh.SSHReader[bytes],
        stdout: asyncssh.SSHWriter[bytes],
        stderr: asyncssh.SSHWriter[bytes],
    ) -> None:
        self._settings = settings
        self._stdin = stdin
        self._stdout = stdout
        self._stderr = stderr
        self._channel: asyncssh.SSHServerChannel[bytes] = stdout.channel  # type: ignore[assignment]
        self._has_terminal = self._channel.get_terminal_type() is not None

    async def run(self) -> None:
        try:
            login = self._start()
        except OSError as error:
            words = say(fact("shell_not_started", error=str(error)))
            self._stderr.write(f"{words}\r\n".encode())
            self._channel.exit(_NOT_STARTED)
            return
        closed = asyncio.create_task(self._channel.wait_closed())
        try:
            await self._join(login, closed)
        finally:
            closed.cancel()
            login.hang_up()

    async def _join(self, login: Login, closed: asyncio.Task[None]) -> None:
        feeding = asyncio.create_task(self._feed(login))
        outputs = asyncio.create_task(self._drain_all(login))
        ended = asyncio.create_task(login.wait())
        try:
            await asyncio.wait({ended, closed}, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                return
            patience = _SECONDS_FOR_LAST_OUTPUT if self._has_terminal else None
            await asyncio.wait({outputs, closed}, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            self._report(ended.result())
        finally:
            for task in (feeding, outputs, ended):
                task.cancel()
            await asyncio.gather(feeding, outputs, ended, return_exceptions=True)

    def _start(self) -> Login:
        channel = self._channel
        program = self._program(channel.get_command())
        if not self._has_terminal:
            return start_on_pipes(program)
        if channel.get_command() is None and not Path(program.directory, ".hushlogin").exists():
            self._stdout.write(self._settings.greeting.replace("\n", "\r\n").encode())
        request = TerminalRequest(channel.get_terminal_size(), channel.get_terminal_modes())
        return start_on_terminal(program, request)

    def _program(self, command: str | None) -> Program:
        """A command by the shell, or a login shell, which is told so by the dash before its name."""
        account = self._settings.account
        name = Path(account.shell).name
        arguments = [f"-{name}"] if command is None else [name, "-c", command]
        return Program(account.shell, arguments, self._environment(), account.home)

    def _environment(self) -> dict[str, str]:
        environment = {**self._settings.environment, **self._wishes_of_client()}
        here = self._channel.get_extra_info("sockname")
        there = self._channel.get_extra_info("peername")
        environment["SSH_CLIENT"] = f"{there[0]} {there[1]} {here[1]}"
        environment["SSH_CONNECTION"] = f"{there[0]} {there[1]} {here[0]} {here[1]}"
        agent = self._channel.get_agent_path()
        if agent:
            environment["SSH_AUTH_SOCK"] = agent
        terminal = self._channel.get_terminal_type()
        if terminal:
            environment["TERM"] = terminal
        return environment

    def _wishes_of_client(self) -> Mapping[str, str]:
        asked = self._channel.get_environment()
        return {name: value for name, value in asked.items() if name.startswith(_CLIENT_VARIABLES)}

    async def _drain_all(self, login: Login) -> None:
        if login.stderr is None:
            await self._drain(login.stdout, self._stdout)
        else:
            await asyncio.gather(
                self._drain(login.stdout, self._stdout), self._drain(login.stderr, self._stderr)
            )

    async def _drain(self, source: int, target: asyncssh.SSHWriter[bytes]) -> None:
        while data := await read_some(source):
            target.write(data)
            await target.drain()

    async def _feed(self, login: Login) -> None:
        """The client's input and signals, until it has no more input or goes away."""
        while True:
            try:
                data = await self._stdin.read(_READ_SIZE)
            except asyncssh.TerminalSizeChanged as change:
                login.resize((change.width, change.height, change.pixwidth, change.pixheight))
            except asyncssh.SignalReceived as received:
                login.send_signal(received.signal)
            except asyncssh.BreakReceived:
                continue
            else:
                if not data:
                    break
                # A program may close its input before the client has sent everything.
                with contextlib.suppress(BrokenPipeError):
                    await write_all(login.stdin, data)
        login.close_input()

    def _report(self, code: int) -> None:
        if code >= 0:
            self._channel.exit(code)
        else:
            self._channel.exit_with_signal(signal.Signals(-code).name.removeprefix("SIG"))


@dataclass(frozen=True, slots=True)
class DevServer:
    key: str
    host_key: str
    public_keys: tuple[str, ...]
    sessions: SessionSettings
    limits: Limits
    has_own_user: bool
    """Nobody else on the machine has its user id, so processes can be counted by it."""


def banner_of(key: str) -> str:
    """The software version and comment with which a dev server greets."""
    return f"gpudev {key}"


async def serve(server: DevServer, listener: socket.socket, on_serving: Callable[[], None]) -> None:
    """Serve until the process is ended from outside."""
    keys = _import_keys(server.public_keys)
    acceptor = await asyncssh.listen(
        sock=listener,
        config=None,
        server_factory=lambda: _Gate(keys),
        session_factory=_SessionFactory(server.sessions),
        sftp_factory=_FileServer,
        allow_scp=True,
        server_host_keys=[asyncssh.import_private_key(server.host_key)],
        server_version=banner_of(server.key),
        encoding=None,
        line_editor=False,
        agent_forwarding=True,
        compression_algs=None,
        window=_WINDOW,
        max_pktsize=_PACKET,
        keepalive_interval=_KEEPALIVE_SECONDS,
        keepalive_count_max=_KEEPALIVES_MISSED,
        login_timeout=_LOGIN_SECONDS,
        gss_host=None,
    )
    on_serving()
    await acceptor.wait_closed()


class _SessionFactory:
    def __init__(self, settings: SessionSettings) -> None:
        self._settings = settings

    async def __call__(
        self,
        stdin: asyncssh.SSHReader[bytes],
        stdout: asyncssh.SSHWriter[bytes],
        stderr: asyncssh.SSHWriter[bytes],
    ) -> None:
        await Session(self._settings, stdin, stdout, stderr).run()


class _FileServer(asyncssh.SFTPServer):
    """asyncssh's own, which ends without an exit status; `scp` takes that for a failed copy."""

    @override
    def exit(self) -> None:
        if self.channel.get_subsystem() is not None:
            self.channel.exit(0)


class _Gate(asyncssh.SSHServer):
    """Who may come in, and what they may do then."""

    def __init__(self, keys: Sequence[asyncssh.SSHKey]) -> None:
        self._keys = keys

    @override
    def begin_auth(self, username: str) -> bool:
        return True

    @override
    def public_key_auth_supported(self) -> bool:
        return True

    @override
    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == LOGIN and key in self._keys

    @override
    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        return True

    @override
    def server_requested(self, listen_host: str, listen_port: int) -> bool:
        return True

    @override
    def unix_connection_requested(self, dest_path: str) -> bool:
        return True

    @override
    def unix_server_requested(self, listen_path: str) -> bool:
        return True


def _import_keys(lines: Sequence[str]) -> tuple[asyncssh.SSHKey, ...]:
    """The keys that can be used; one that cannot does not keep the others out."""
    keys: list[asyncssh.SSHKey] = []
    for line in lines:
        try:
            keys.append(asyncssh.import_public_key(line))
        except asyncssh.KeyImportError as error:
            _log.warning("public_key_left_out: %s: %s", error, line)
    return tuple(keys)
