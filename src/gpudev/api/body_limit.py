"""Limits on request bodies: how long they may be, and how long a sender may take.

Every route has them, and they apply before a body is parsed and before a key is looked at, so nobody can make
the server hold an unbounded body. A body is read here as a whole; the application gets it in one piece.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType

import orjson
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpudev.api.encoding import json_response
from gpudev.wire.cluster import ErrorBody

MAX_BODY = 65_536
LONGER: Mapping[str, int] = MappingProxyType({"/v1/jobs/submit": 1 << 20})
"""A submit carries up to 100 SSH keys and 32 KiB of environment."""
BODY_SECONDS = 30.0

_DRAIN_SECONDS = 2.0
_MOST_DRAINED = 8 << 20
_UNKNOWN_LENGTH = -1
_HINT = "See /docs for what this route takes."


class BodyLimit:
    """Rejects a body as soon as it is known to be too long, and keeps no more of it than the limit."""

    def __init__(self, app: ASGIApp, seconds: float = BODY_SECONDS) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        length = find_length(scope["headers"]) if scope["type"] == "http" else 0
        if length == 0:
            await self._app(scope, receive, send)
            return
        limit = LONGER.get(scope["path"], MAX_BODY)
        if length > limit:
            await _reject(_too_large(limit), receive, send)
            return
        try:
            async with asyncio.timeout(self._seconds):
                body = await _read(receive, limit)
        except TimeoutError:
            await _reject(_too_slow(self._seconds), receive, send)
            return
        if body is None:
            return
        if len(body) > limit:
            await _reject(_too_large(limit), receive, send)
            return
        if flaw := _find_flaw(body, scope["headers"]):
            await flaw(scope, receive, send)
            return
        await self._app(scope, _replay(body, receive), send)


def find_length(headers: Iterable[tuple[bytes, bytes]]) -> int:
    """The announced length of a body, 0 if there is none, negative if it is not known in advance."""
    for name, value in headers:
        if name == b"content-length":
            return int(value)
        if name == b"transfer-encoding":
            return _UNKNOWN_LENGTH
    return 0


async def _read(receive: Receive, limit: int) -> bytes | None:
    """The body, or its first bytes if it is longer than the limit; None if the sender has gone."""
    parts: list[bytes] = []
    size, has_more = 0, True
    while has_more and size <= limit:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        has_more = message.get("more_body", False)
    return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    is_new = True

    async def replay() -> Message:
        nonlocal is_new
        if not is_new:
            return await receive()
        is_new = False
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


async def _reject(response: Response, receive: Receive, send: Send) -> None:
    """Answer, then drop what is still coming, for a while.

    A connection that is closed while data is arriving is reset, and a sender that writes its whole body
    before it reads would lose the answer.
    """
    await send(
        {"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers}
    )
    await send({"type": "http.response.body", "body": response.body, "more_body": True})
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            await _drain(receive)
    await send({"type": "http.response.body", "body": b""})


async def _drain(receive: Receive) -> None:
    size, has_more = 0, True
    while has_more and size < _MOST_DRAINED:
        message = await receive()
        size += len(message.get("body", b""))
        has_more = message.get("more_body", False)


def _find_flaw(body: bytes, headers: Iterable[tuple[bytes, bytes]]) -> Response | None:
    """A rejection of what claims to be JSON and is not.

    The parser of the standard library, which the routes use, takes more than JSON, such as NaN, and fails on
    numbers of thousands of digits. A lone surrogate is left to the check of its field, which names the field.
    """
    kind = next((value for name, value in headers if name == b"content-type"), b"").lower()
    if not body or b"json" not in kind:
        return None
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if _is_json_but_for_surrogates(body):
            return None
        problem = {"loc": ["body", error.pos], "msg": "JSON decode error", "type": "json_invalid"}
        return json_response({"detail": [problem], "code": "bad_request_body", "hint": _HINT}, 422)
    return None


def _is_json_but_for_surrogates(body: bytes) -> bool:
    try:
        json.loads(body, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return False
    return True


def _reject_constant(name: str) -> None:
    raise ValueError(name)


def _too_large(limit: int) -> Response:
    body = ErrorBody(
        detail=f"The body of this request may have at most {limit} bytes.",
        code="body_too_large",
        hint=_HINT,
    )
    return json_response(body, 413, {"Connection": "close"})


def _too_slow(seconds: float) -> Response:
    body = ErrorBody(
        detail=f"The body of this request did not arrive within {seconds:g} seconds.",
        code="body_too_slow",
        hint="Check your network, then try again.",
    )
    return json_response(body, 408, {"Connection": "close"})
