"""Runs a program in a container, over a WebSocket of the Kubernetes API.

Each message begins with the number of its channel. The standard input has to mark its own end: only newer
servers can close that channel.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

import httpx2
import orjson
from httpx2.websockets import AsyncWebSocketSession, HTTPXWSException, WebSocketUpgradeError

from gpudev.adapters.kubernetes.api_objects import Json
from gpudev.domain.errors import ClusterUnavailable
from gpudev.texts.fact import Fact, fact

_PROTOCOLS = ["v5.channel.k8s.io", "v4.channel.k8s.io"]
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
    http: httpx2.AsyncClient, place: ExecTarget, command: Sequence[str], stdin: bytes
) -> ExecResult:
    """`ClusterUnavailable` if it did not run to its end, for whatever reason."""
    parameters: list[tuple[str, str | int | float | bool | None]] = [
        ("container", place.container),
        *((stream, "true") for stream in ("stdin", "stdout", "stderr")),
        *(("command", word) for word in command),
    ]
    opening = http.websocket(f"{place.path}/exec", subprotocols=_PROTOCOLS, params=parameters)
    try:
        async with asyncio.timeout(_SECONDS), opening as session:
            # What is raised while the session is open comes out of it in a group.
            ended = await _converse(session, stdin)
    except WebSocketUpgradeError as error:
        raise _not_run(fact("answered_with_status", status=error.response.status_code)) from error
    except TimeoutError as error:
        raise _not_run(fact("program_timeout", seconds=_SECONDS)) from error
    except httpx2.TransportError as error:
        raise _not_run(_words_of(error)) from error
    return ExecResult(read_exit_code(ended.status), ended.out, ended.err)


@dataclass(frozen=True, slots=True)
class _Ended:
    status: Json
    out: str = ""
    err: str = ""


async def _converse(session: AsyncWebSocketSession, stdin: bytes) -> _Ended:
    try:
        await session.send_bytes(bytes([_STDIN]) + stdin)
        return await _hear_out(session)
    except (HTTPXWSException, httpx2.TransportError) as error:
        return _Ended({"status": "Failure", "message": _words_of(error)})


async def _hear_out(session: AsyncWebSocketSession) -> _Ended:
    said = {_STDOUT: b"", _STDERR: b""}
    while True:
        message = await session.receive_bytes()
        if not message:
            continue
        channel, content = message[0], message[1:]
        if channel == _STATUS:
            return _Ended(
                orjson.loads(content), *(said[one].decode(errors="replace") for one in (_STDOUT, _STDERR))
            )
        if channel in said:
            said[channel] = (said[channel] + content)[:_LONGEST_OUTPUT]


def read_exit_code(status: Json) -> int:
    """A `Status` that is neither success nor an exit code tells why the program was not run."""
    if status.get("status") == "Success":
        return 0
    causes = (status.get("details") or {}).get("causes") or ()
    codes = [cause.get("message") for cause in causes if cause.get("reason") == "ExitCode"]
    if not codes or not re.fullmatch(r"[0-9]{1,9}", str(codes[0])):
        raise _not_run(str(status.get("message", "")).rstrip("."))
    return int(codes[0])


def _words_of(error: Exception) -> str:
    return str(error) or type(error).__name__


def _not_run(why: str | Fact) -> ClusterUnavailable:
    return ClusterUnavailable("program_not_run", why=why)
