"""Runs a program in a container, over a WebSocket of the Kubernetes API.

Each message begins with the number of its channel. The standard input has to mark its own end: only newer
servers can close that channel.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

import orjson
from aiohttp import ClientWebSocketResponse, WSMsgType

from gpudev.adapters.kubernetes.api_objects import Json
from gpudev.adapters.kubernetes.connection import Connection, Unanswered
from gpudev.domain.errors import ClusterUnavailable
from gpudev.texts.fact import Fact, fact

_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STDIN, _STDOUT, _STDERR, _STATUS = range(4)
_SECONDS = 15.0
_LONGEST_OUTPUT = 64 * 1024


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How a program in a container ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class ExecTarget:
    """Where a program runs."""

    path: str
    """Of the pod, in the API."""
    container: str


async def run_program(
    connection: Connection, target: ExecTarget, command: Sequence[str], stdin: bytes
) -> ExecResult:
    """`ClusterUnavailable` if it did not run to its end, for whatever reason."""
    parameters = [
        ("container", target.container),
        *((stream, "true") for stream in ("stdin", "stdout", "stderr")),
        *(("command", word) for word in command),
    ]
    try:
        async with (
            asyncio.timeout(_SECONDS),
            connection.websocket(f"{target.path}/exec", parameters, _PROTOCOLS) as session,
        ):
            await session.send_bytes(bytes([_STDIN]) + stdin)
            return await _hear_out(session)
    except Unanswered as error:
        raise _not_run(error.why) from error
    except TimeoutError as error:
        raise _not_run(fact("program_timeout", seconds=_SECONDS)) from error


async def _hear_out(session: ClientWebSocketResponse) -> ExecResult:
    said = {_STDOUT: b"", _STDERR: b""}
    async for message in session:
        if message.type is not WSMsgType.BINARY or not message.data:
            continue
        channel, content = message.data[0], message.data[1:]
        if channel == _STATUS:
            out, err = (said[one].decode(errors="replace") for one in (_STDOUT, _STDERR))
            return ExecResult(read_exit_code(orjson.loads(content)), out, err)
        if channel in said:
            said[channel] = (said[channel] + content)[:_LONGEST_OUTPUT]
    raise _not_run(str(session.exception() or "") or fact("answered_with_status", status=session.close_code))


def read_exit_code(status: Json) -> int:
    """A `Status` that is neither success nor an exit code tells why the program was not run."""
    if status.get("status") == "Success":
        return 0
    causes = (status.get("details") or {}).get("causes") or ()
    codes = [cause.get("message") for cause in causes if cause.get("reason") == "ExitCode"]
    if not codes or not re.fullmatch(r"[0-9]{1,9}", str(codes[0])):
        raise _not_run(str(status.get("message", "")).rstrip("."))
    return int(codes[0])


def _not_run(why: str | Fact) -> ClusterUnavailable:
    return ClusterUnavailable("program_not_run", why=why)
