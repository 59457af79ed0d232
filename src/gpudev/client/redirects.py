"""Where a redirected request goes next: decided here, carried out by `http` and `tunnel`.

A redirect within the server's own origin (scheme, host and port) is followed with the API key. Any other is
not: a key is sent to nobody but the server that the user has configured. The user is told the new address.
"""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

from gpudev.client.errors import Unreachable

MOST_HOPS = 5
REDIRECTS = frozenset({301, 302, 303, 307, 308})

_DEFAULT_PORTS = {"http": 80, "https": 443}
_SEE_OTHER = 303
_OF_OLD = frozenset({301, 302})
"""After these every client asks with GET for what was posted."""


def choose_method(status: int, method: str) -> str:
    if status == _SEE_OTHER and method != "HEAD":
        return "GET"
    return "GET" if status in _OF_OLD and method == "POST" else method


def find_target(here: str, location: str) -> str:
    """The path and query of the same origin to ask next; `here` is the address that answered.

    `Unreachable` where the redirect leads elsewhere.
    """
    there = urljoin(here, location)
    if _origin(there) != _origin(here):
        raise _moved(here, there)
    parts = urlsplit(there)
    return f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"


def too_many(here: str) -> Unreachable:
    return Unreachable(
        f"The server at {_server(here)} redirects more than {MOST_HOPS} times.",
        hint="Check the address in GPU_DEV_API_URL or the configuration.",
        code="too_many_redirects",
    )


def _moved(here: str, there: str) -> Unreachable:
    was, now = urlsplit(here), urlsplit(there)
    if now.scheme not in _DEFAULT_PORTS or not now.hostname:
        words = f"The server at {_server(here)} redirects to something that is not an HTTP address."
        return Unreachable(words, code="bad_redirect")
    words = f"The server at {_server(here)} redirects to {_server(there)}"
    if (was.scheme, now.scheme) == ("https", "http"):
        return Unreachable(
            f"{words}, which is not encrypted. Your API key was not sent there.", code="bad_redirect"
        )
    return Unreachable(
        f"{words}. Your API key was not sent there.",
        hint=f"If you trust that address: gpu-dev config set api_url {_server(there)}",
        code="server_moved",
    )


def _origin(address: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(address)
    try:
        port = parts.port
    except ValueError:
        port = -1
    return parts.scheme, parts.hostname, port or _DEFAULT_PORTS.get(parts.scheme)


def _server(address: str) -> str:
    """Without path and without a password that may be in it."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
