"""A limit on what strangers may send: bodies of the login routes are read before anybody is known."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpudev.api.encoding import json_response
from gpudev.wire.cluster import ErrorBody

PREFIX = "/v1/auth/"
MAX_BODY = 65_536

_TOO_LARGE = ErrorBody(
    detail=f"The body of a login has at most {MAX_BODY} bytes.",
    code="body_too_large",
    hint="See /docs for what this route takes.",
)


class BodyLimit:
    """Refuses a body as soon as it is known to be too long, and reads no more of it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            await self._app(scope, receive, send)
            return
        parts: list[Message] = []
        size, has_more = 0, True
        while has_more and size <= MAX_BODY:
            message = await receive()
            parts.append(message)
            size += len(message.get("body", b""))
            has_more = message.get("more_body", False)
        if size > MAX_BODY:
            await json_response(_TOO_LARGE, 413, {"Connection": "close"})(scope, receive, send)
            return

        async def replay() -> Message:
            return parts.pop(0) if parts else await receive()

        await self._app(scope, replay, send)
