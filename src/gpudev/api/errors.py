"""Errors to HTTP answers: the one table, how OpenAPI lists them, and the boundary that nothing escapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, timedelta, tzinfo
from typing import Any

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gpudev.api.encoding import json_response
from gpudev.api.times import zone_of
from gpudev.api.wire_schema import BadText, list_wire_types
from gpudev.domain import errors
from gpudev.texts.sentences import advise, say
from gpudev.wire.cluster import ErrorBody, ValidationErrorBody
from gpudev.wire.text import NOT_FOUND
from gpudev.wire.versions import CLIENT_HEADER

STATUS_OF: dict[type[errors.GpuDevError], int] = {
    errors.Invalid: 400,
    errors.Unauthenticated: 401,
    errors.NotAllowed: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.Gone: 410,
    errors.IllegalMove: 409,
    errors.QuotaExceeded: 409,
    errors.TooManyRequests: 429,
    errors.Stale: 409,
    errors.Rejected: 400,
    errors.Unavailable: 503,
    errors.Defect: 500,
}

_RETRY_AFTER = timedelta(seconds=2)
_CODES_OF_HTTP = {404: "not_found", 405: "method_not_allowed"}

_FORMS = frozenset(kind.__name__ for kind in list_wire_types())
"""A body that has several forms is validated as one of them, which is then named in the place."""

_UNPROCESSABLE = 422
_DESCRIPTIONS = {
    400: "A value is out of its range or not a known choice; nothing was done.",
    401: "There is no API key, or it is unknown, expired or revoked.",
    403: "The caller may not do this, or is disabled.",
    404: "There is no such thing, or it is somebody else's.",
    408: "The body did not arrive in time.",
    409: "It clashes with what exists.",
    410: "It is deleted.",
    413: "The body is too long.",
    422: "The request does not fit the schema; `detail` is a list.",
    429: "It was asked too often; `Retry-After` says when to ask again.",
    500: "An error of ours.",
    503: "A part that is needed does not answer; `Retry-After` says when to ask again.",
}
Responses = dict[int | str, dict[str, Any]]

_log = structlog.get_logger(__name__)


def status_of(error: errors.GpuDevError) -> int:
    """The status of the nearest ancestor in the table."""
    return next(STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF)


def install(app: FastAPI) -> None:
    app.add_exception_handler(errors.GpuDevError, _answer_known)
    app.add_exception_handler(RequestValidationError, _answer_validation)
    app.add_exception_handler(HTTPException, _answer_http)
    app.add_middleware(ErrorBoundary)


async def _answer_known(request: Request, error: Exception) -> Response:
    if not isinstance(error, errors.GpuDevError):
        raise error
    return _answer(request, error)


def _answer(request: Request, error: errors.GpuDevError) -> Response:
    return answer_of(error, shows_hint=shows_hint(request), zone=zone_of(request))


def shows_hint(request: Request) -> bool:
    """Clients of ours say who they are, and show the hint. Those of 0.3 show the sentence alone."""
    return CLIENT_HEADER in request.headers


def answer_of(error: errors.GpuDevError, *, shows_hint: bool = True, zone: tzinfo = UTC) -> Response:
    """Where the client does not show the hint, it becomes part of the sentence. Times are in the zone."""
    status = status_of(error)
    headers = {}
    if isinstance(error, errors.Unavailable | errors.TooManyRequests):
        wait = error.retry_after or _RETRY_AFTER
        headers["Retry-After"] = str(max(1, math.ceil(wait.total_seconds())))
    if status == 401:  # noqa: PLR2004 - the status itself
        headers["WWW-Authenticate"] = "Bearer"
    sentence, hint = say(error.fact, zone), advise(error.fact, zone)
    detail = sentence if shows_hint else f"{sentence} {hint}".rstrip()
    return json_response(ErrorBody(detail=detail, code=error.code, hint=hint), status, headers)


async def _answer_validation(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    for problem in error.errors():
        flaw = problem.get("ctx", {}).get("error")
        if isinstance(flaw, BadText):
            return _answer(request, _error_of_text(flaw, _field(problem["loc"])))
    problems = [
        {"loc": _place(problem["loc"]), "msg": problem["msg"], "type": problem["type"]}
        for problem in error.errors()
    ]
    hint = "See /docs for what this route takes."
    return json_response({"detail": problems, "code": "bad_request_body", "hint": hint}, 422)


def _error_of_text(flaw: BadText, field: str) -> errors.GpuDevError:
    if flaw.rule.code == NOT_FOUND:
        return errors.NotFound(
            "field_not_found", field=field, longest=flaw.rule.longest, has_lines=flaw.rule.has_lines
        )
    return errors.Invalid(
        "bad_text", field=field, longest=flaw.rule.longest, has_lines=flaw.rule.has_lines, code=flaw.rule.code
    )


def _field(loc: Sequence[str | int]) -> str:
    """What the sender calls it. A key of a mapping can be what is wrong, so that is not repeated."""
    names = [str(step) for step in _place(loc)[1:] if isinstance(step, str)]
    return names[0] if names else "The body"


def _place(loc: Sequence[str | int]) -> list[str | int]:
    """Where it is in what was sent; which of two forms of a body it is in says nothing to the sender."""
    return [step for step in loc if step not in _FORMS]


async def _answer_http(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    headers = dict(error.headers or {})
    if error.status_code == 405:  # noqa: PLR2004 - the status itself
        headers["Allow"] = ", ".join(sorted(_list_methods(request)))
    hint = "The routes are listed at /docs."
    detail = str(error.detail)
    body = ErrorBody(
        detail=detail if shows_hint(request) else f"{detail}. {hint}",
        code=_CODES_OF_HTTP.get(error.status_code, "http_error"),
        hint=hint,
    )
    return json_response(body, error.status_code, headers)


def _list_methods(request: Request) -> set[str]:
    """What this path can be asked with. Each method has a route of its own, which knows only itself."""
    matching = (route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE)
    return {method for route in matching for method in getattr(route, "methods", None) or ()}


class ErrorBoundary:
    """Around everything: an error that nothing else answered is logged and told as JSON."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def watched_send(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched_send)
        except Exception:
            if scope["type"] != "http" or has_begun:
                raise
            _log.exception("request_failed", method=scope["method"], path=scope["path"])
            is_ours = any(name == _CLIENT_HEADER for name, _ in scope["headers"])
            await answer_of(_DEFECT, shows_hint=is_ours)(scope, receive, send)


_DEFECT = errors.Defect("server_error")
_CLIENT_HEADER = CLIENT_HEADER.lower().encode()


def problems(*statuses: int) -> Responses:
    """For `responses=` of a route or a router."""
    return {
        status: {
            "model": ValidationErrorBody if status == _UNPROCESSABLE else ErrorBody,
            "description": _DESCRIPTIONS[status],
        }
        for status in statuses
    }


OF_EVERY_ROUTE = problems(400, 408, 413, 422, 500, 503)
OF_EVERY_CALLER = OF_EVERY_ROUTE | problems(401, 403, 429)
"""What a route answers that wants an API key."""
