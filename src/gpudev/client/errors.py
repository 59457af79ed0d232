"""Everything that may go wrong on the client's side of the wire, as one tree.

    ClientError          code, message (what happened), hint (what to type next)
    ├── Usage            the request does not make sense as it stands (400, 422)
    ├── LoginFailed      the server does not know who is asking (401), or there is no way to tell it
    ├── NotAllowed       it knows, and says no (403)
    ├── NotFound         no such reservation or operation (404)
    ├── Conflict         it clashes with what exists: a taken name, two matches for an id (409, 410)
    ├── QuotaExceeded    the caller's share is used up
    ├── TooManyRequests  the caller asks too often (429)
    ├── NoCapacity       there is no room
    ├── NotActive        the reservation is over, or not there yet
    ├── TimedOut         the wait was longer than the caller allowed
    ├── Unreachable      no answer, or no address to ask
    ├── ServerFailed     an answer that is an error of the server's own (5xx), or that cannot be read
    ├── Outdated         this client is too old for the server
    ├── BrokenFile       a file of the user's configuration cannot be used
    ├── CommandFailed    what was run on a dev server failed; it has the exit code and the output
    ├── ConnectionLost   the SSH connection to a dev server failed: what runs there may run on
    └── Interrupted      the caller did not want to wait any longer

The server's sentence and hint are passed on as they are.
"""

from __future__ import annotations

from typing import Any


class ClientError(Exception):
    default_code = "error"

    def __init__(self, message: str, *, hint: str = "", code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or self.default_code


class Usage(ClientError):
    default_code = "invalid"


class LoginFailed(ClientError):
    default_code = "unauthenticated"


class NotAllowed(ClientError):
    default_code = "not_allowed"


class NotFound(ClientError):
    default_code = "not_found"


class Conflict(ClientError):
    default_code = "conflict"


class QuotaExceeded(ClientError):
    default_code = "quota_exceeded"


class TooManyRequests(ClientError):
    default_code = "too_many_requests"


class NoCapacity(ClientError):
    default_code = "no_capacity"


class NotActive(ClientError):
    default_code = "not_active"


class TimedOut(ClientError):
    default_code = "timed_out"


class Unreachable(ClientError):
    default_code = "unreachable"


class ServerFailed(ClientError):
    default_code = "server_error"


class Outdated(ClientError):
    default_code = "client_too_old"


class BrokenFile(ClientError):
    default_code = "broken_file"


class CommandFailed(ClientError):
    default_code = "command_failed"

    def __init__(self, message: str, *, exit_code: int, output: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.exit_code = exit_code
        self.output = output


class ConnectionLost(ClientError):
    default_code = "connection_lost"


class Interrupted(ClientError):
    default_code = "interrupted"


_BY_CODE: dict[str, type[ClientError]] = {"quota_exceeded": QuotaExceeded, "no_capacity": NoCapacity}
"""Looked up before the status: these share theirs with other errors."""

_BY_STATUS: dict[int, type[ClientError]] = {
    400: Usage,
    401: LoginFailed,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    410: Conflict,
    422: Usage,
    429: TooManyRequests,
}


def error_of(status: int, body: bytes, retry_after: float | None = None) -> ClientError:
    """The error that an answer with this status stands for."""
    content = _parse(body)
    code = str(content.get("code", ""))
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status, ServerFailed)
    message = _sentence(content.get("detail")) or f"The server answered with HTTP status {status}."
    hint = str(content.get("hint", ""))
    if kind is TooManyRequests and retry_after is not None:
        hint = f"Try again in {retry_after:.0f} seconds."
    return kind(message, hint=hint, code=code)


def _parse(body: bytes) -> dict[str, Any]:
    """The error's JSON object; a proxy on the way may answer with something else, which says nothing."""
    import json  # noqa: PLC0415 - the errors alone are loaded with every command, also by `--help`

    try:
        content = json.loads(body)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _sentence(detail: object) -> str:
    if isinstance(detail, list):
        return "; ".join(_complaint(entry) for entry in detail)
    return detail if isinstance(detail, str) else ""


def _complaint(entry: object) -> str:
    """One entry of a 422: `{"loc": ["body", "gpu_count"], "msg": "Input should be ..."}`."""
    if not isinstance(entry, dict):
        return str(entry)
    place = ".".join(str(part) for part in entry.get("loc", ()) if part not in ("body", "query", "path"))
    message = str(entry.get("msg", "is not valid"))
    return f"{place}: {message}" if place else message
