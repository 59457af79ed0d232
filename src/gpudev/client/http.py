"""Requests over one kept connection, with time limits and careful repeats; `transport` speaks the HTTP.

Only requests that may be repeated are: those that change nothing, those that do the same when done twice,
and a submit that carries an `Idempotency-Key`. A server that says when to ask again (`Retry-After`) is asked
then, if that is soon; the number of repeats is small in any case.

Redirects within the server's own origin are followed (see `redirects`), and the proxies that the environment
names are used (see `proxies`). Certificates are checked against those of the system.

Everything that can go wrong on the way is `Unreachable`; an answer with any status is a `Response`. The
first answer also tells the server's version: one that this client is too old for is `Outdated`.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from gpudev import __version__
from gpudev.client.config import DEFAULT_PORTS, LOOPBACK_HOSTS, find_time_zone, read_proxy_variables
from gpudev.client.errors import ClientError, Outdated, Unreachable
from gpudev.client.interruption import stopped_by
from gpudev.client.proxies import Proxy, ProxyFailed, dial_through, dial_to, find_proxy
from gpudev.client.redirects import MOST_HOPS, REDIRECTS, choose_method, find_target, too_many
from gpudev.client.transport import Answer, BadAnswer, Connection, ConnectionEnded, dial_unix
from gpudev.wire.versions import CLIENT_HEADER, OLDEST_CLIENT_HEADER, TIME_ZONE_HEADER, VERSION_HEADER

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 30.0
REPEAT_PAUSES = (0.1, 0.4)
LONGEST_PAUSE = 15.0
"""A server that wants a longer one is not waited for: the user is told instead."""
TEMPORARY = frozenset({502, 503, 504})
"""Statuses that often pass: something on the way, or behind the server, is starting."""
TOO_MANY_REQUESTS = 429
BAD_REQUEST = 400


class Request(NamedTuple):
    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = MappingProxyType({})
    may_repeat: bool = False
    is_whole: bool = False
    """The path is as a redirect said it, with what paths at the server's address begin with."""


class Response(NamedTuple):
    status: int
    body: bytes
    retry_after: float | None = None
    """In how many seconds to ask again, where the server says so."""
    location: str | None = None
    """Where a redirect leads."""

    @property
    def is_ok(self) -> bool:
        return self.status < BAD_REQUEST


class Stream:
    """An answer that is read line by line as it comes."""

    def __init__(self, server: Http, response: Answer) -> None:
        self._server = server
        self._response = response
        self.status = response.status

    def read(self) -> Response:
        """The whole of it, for an answer that turned out to be an error."""
        with self._server.translated_errors():
            return _read(self._response)

    def lines(self) -> Iterator[str]:
        while line := self._next_line():
            yield line.decode().rstrip("\r\n")

    def _next_line(self) -> bytes:
        with self._server.translated_errors():
            return self._response.read_line()


class Http:
    """The connection to one server. Threads may share it: they take turns, but for streams."""

    def __init__(
        self, api_url: str, answer_seconds: float = ANSWER_SECONDS, socket_file: Path | None = None
    ) -> None:
        self._answer_seconds = answer_seconds
        self._socket_file = socket_file
        parts = urlsplit(api_url)
        self._api_url = api_url
        self._scheme = parts.scheme
        self._host = parts.hostname or ""
        self._port = parts.port or DEFAULT_PORTS[parts.scheme]
        self._prefix = parts.path
        self._kept: Connection | None = None
        self.server_version: str | None = None
        """Known after the first answer of a server that tells it."""
        self._turn = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def host(self) -> str:
        """The host name that the client was configured with, in lower case."""
        return self._host

    @property
    def authority(self) -> str:
        """`host:port` as the client was configured with, the default port written out."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{host}:{self._port}"

    @property
    def _named_host(self) -> str:
        """As the header wants it: without the port where it is the usual one."""
        is_usual = self._port == DEFAULT_PORTS[self._scheme]
        return self.authority.rpartition(":")[0] if is_usual else self.authority

    def send(self, request: Request) -> Response:
        with self._turn:
            return self._send(request)

    def _send(self, request: Request) -> Response:
        # A kept connection may have been closed by the server meanwhile: then the first repeat is at once.
        first = (0.0,) if self._kept is not None else ()
        pauses = iter((*first, *REPEAT_PAUSES) if request.may_repeat else ())
        while True:
            pause = next(pauses, None)
            try:
                response = self._attempt(request)
            except Unreachable:
                if pause is None:
                    raise
            else:
                pause = _choose_pause(response, pause)
                if pause is None:
                    return response
            time.sleep(pause)

    @contextlib.contextmanager
    def stream(self, request: Request, silence_seconds: float) -> Iterator[Stream]:
        """A connection of its own for a long answer; `Unreachable` if it is silent for too long."""
        for _ in range(MOST_HOPS + 1):
            with self.translated_errors():
                connection = self._connect()
            with contextlib.closing(connection), stopped_by(connection.shut_down):
                with self.translated_errors():
                    answer = self._ask(connection, request)
                    connection.set_patience(silence_seconds)
                location = answer.get_header("Location")
                if answer.status not in REDIRECTS or location is None:
                    yield Stream(self, answer)
                    return
            request = self._redirect(request, answer.status, location)
        raise too_many(self._api_url)

    def dial(self) -> socket.socket:
        """A connection of the caller's own, for what is not HTTP once it has begun."""
        with self.translated_errors():
            return self._connect(tunnels=True).release()

    @property
    def prefix(self) -> str:
        """What the paths at this address begin with."""
        return self._prefix

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    @contextlib.contextmanager
    def translated_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, BadAnswer, ProxyFailed) as error:
            raise self._unreachable(error) from error

    def _attempt(self, request: Request) -> Response:
        for _ in range(MOST_HOPS + 1):
            response = self._exchange(request)
            if response.status not in REDIRECTS or response.location is None:
                return response
            request = self._redirect(request, response.status, response.location)
        raise too_many(self._api_url)

    def _redirect(self, request: Request, status: int, location: str) -> Request:
        """The request that follows; it goes to this very server, or to none."""
        path = find_target(self.address_of(request), location)
        method = choose_method(status, request.method)
        body = request.body if method == request.method else None
        return request._replace(method=method, path=path, body=body, is_whole=True)

    def address_of(self, request: Request) -> str:
        return f"{self._scheme}://{self.authority}{self._path_of(request)}"

    def _path_of(self, request: Request) -> str:
        return request.path if request.is_whole else f"{self._prefix}{request.path}"

    def _exchange(self, request: Request) -> Response:
        try:
            with self.translated_errors():
                if self._kept is None:
                    self._kept = self._connect()
                response = _read(self._ask(self._kept, request))
        except ClientError:  # the rest of an answer must not be taken for the next one
            self.close()
            raise
        if not self._kept.is_open:  # the server asked for the connection to end with this answer
            self._kept = None
        return response

    def _connect(self, *, tunnels: bool = False) -> Connection:
        """With `tunnels`, a proxy is asked for a connection also where it could pass requests on."""
        seconds = min(CONNECT_SECONDS, self._answer_seconds)
        via = None
        if self._socket_file is not None and self._socket_file.is_socket():
            via = partial(dial_unix, self._socket_file)
        elif self._proxy is not None:
            through = dial_to if self._passes_on and not tunnels else dial_through
            via = partial(through, self._proxy, self._host, self._port)
        connection = Connection(self._scheme, self._host, self._port, seconds, via)
        connection.set_patience(self._answer_seconds)
        return connection

    @cached_property
    def _proxy(self) -> Proxy | None:
        if self._socket_file is not None:
            return None
        return find_proxy(self._scheme, self._host, self._port, read_proxy_variables())

    @property
    def _passes_on(self) -> bool:
        """A proxy before a plain address takes each request with the whole address, and passes it on."""
        return self._proxy is not None and self._scheme == "http"

    def _ask(self, connection: Connection, request: Request) -> Answer:
        headers = {
            "Host": self._named_host,
            **self.own_headers,
            "Accept": "application/json",
            **request.headers,
        }
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        path = self._path_of(request)
        if self._passes_on and self._proxy is not None:
            path = self.address_of(request)
            headers |= self._proxy.headers
        answer = connection.ask(request.method, path, headers, request.body)
        if self.server_version is None:
            self._meet(answer)
        return answer

    @cached_property
    def own_headers(self) -> Mapping[str, str]:
        """What this client is, and in which zone its reader lives."""
        zone = find_time_zone()
        return {CLIENT_HEADER: __version__, **({TIME_ZONE_HEADER: zone} if zone else {})}

    def _meet(self, answer: Answer) -> None:
        version, oldest = answer.get_header(VERSION_HEADER), answer.get_header(OLDEST_CLIENT_HEADER)
        if version is None:
            return
        self.server_version = version
        if version == __version__:
            return
        # Late: nearly always the two are the same.
        from gpudev.client.versions import UPGRADE, OutdatedClient, Verdict, judge  # noqa: PLC0415 - see above

        verdict = judge(__version__, version, oldest or "")
        words = f"This is gpu-dev {__version__}, and the server at {self._api_url} is {version}"
        if verdict is Verdict.TOO_OLD:
            raise Outdated(f"{words}, which needs {oldest} or newer.", hint=UPGRADE)
        if verdict is Verdict.OLD:
            warnings.warn(f"{words}. {UPGRADE}", OutdatedClient, stacklevel=2)

    def _unreachable(self, error: Exception) -> Unreachable:
        is_local = self._host in LOOPBACK_HOSTS
        hint = (
            "Start it with: gpu-dev up"
            if is_local
            else "Check your network, and the address in GPU_DEV_API_URL or the configuration."
        )
        return Unreachable(
            f"The gpu-dev server at {self._api_url} does not answer: {_reason(error)}.", hint=hint
        )


def _read(answer: Answer) -> Response:
    given = answer.get_header("Retry-After") or ""
    pause = float(given) if given.isdecimal() else None
    return Response(answer.status, answer.read(), pause, answer.get_header("Location"))


def _choose_pause(response: Response, planned: float | None) -> float | None:
    """How long to wait before the same is asked again; None if it is not to be asked again."""
    if planned is None or response.status not in TEMPORARY | {TOO_MANY_REQUESTS}:
        return None
    if response.retry_after is None:
        return planned if response.status in TEMPORARY else None
    return max(planned, response.retry_after) if response.retry_after <= LONGEST_PAUSE else None


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it took too long"
    if isinstance(error, ConnectionEnded):
        return "it closed the connection"
    if flaw := getattr(error, "verify_message", ""):  # of an `ssl` that only they load who need it
        return f"its certificate is not valid ({flaw})"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    return str(error) or type(error).__name__
