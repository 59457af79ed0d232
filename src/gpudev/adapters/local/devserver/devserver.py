"""The SSH server of one dev server. It runs inside the sandbox, as the user one logs in as.

Keys only. Shells, commands, copies and forwards are all in the same surroundings, since this process
makes them all. Its version line ends in its record's key, so whoever connects can tell which dev
server answers.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import asyncssh
from typing_extensions import override

from gpudev.adapters.local.devserver.limits import Limits
from gpudev.adapters.local.devserver.sessions import Session, SessionSettings
from gpudev.domain.server import LOGIN

_log = logging.getLogger(__name__)

_WINDOW = 4 * 1024 * 1024
_PACKET = 64 * 1024
_KEEPALIVE_SECONDS = 30
_KEEPALIVES_MISSED = 4
_LOGIN_SECONDS = 60


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
