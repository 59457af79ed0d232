"""HTTP calls, streams and WebSockets to the API server of one cluster.

Connections are kept and used again. A call that gets no answer is `Unanswered`; whether to try again is for
the caller to decide. Redirects are not followed, and nothing is remembered between calls.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import orjson
from typing_extensions import override

from gpudev.adapters.kubernetes.api_objects import Json
from gpudev.adapters.kubernetes.kubeconfig import Credentials, Kubeconfig
from gpudev.domain.errors import ClusterUnavailable
from gpudev.texts.fact import Fact, fact

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ConnectionKey

SECONDS = 10.0
"""To connect, and from one piece of an answer to the next."""
_IDLE_SECONDS = 5.0
"""Something in between may drop an idle connection without a word."""
_CLOSE_SECONDS = 1.0


class Unanswered(Exception):
    """No answer, or only a part of one."""

    def __init__(self, why: str | Fact, *, is_timeout: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.is_timeout = is_timeout
        """It was connected, and nothing came."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    content: bytes

    @property
    def is_error(self) -> bool:
        return self.status >= HTTPStatus.BAD_REQUEST

    @property
    def json(self) -> Json:
        """Empty if it is no object."""
        try:
            value = orjson.loads(self.content)
        except orjson.JSONDecodeError:
            return {}
        return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer whose end is not known."""

    status: int
    response: aiohttp.ClientResponse

    async def read_all(self) -> Answer:
        return Answer(self.status, await self.response.read())

    def chunks(self) -> AsyncIterator[bytes]:
        return aiter(self.response.content.iter_any())


@dataclass(frozen=True, slots=True)
class _Order:
    method: str
    path: str
    parameters: Mapping[str, str] | None
    limits: aiohttp.ClientTimeout
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Connection:
    def __init__(
        self, http: aiohttp.ClientSession, server: str, credentials: Credentials, seconds: float = SECONDS
    ) -> None:
        self._http = http
        self._server = server
        self._credentials = credentials
        self._seconds = seconds

    async def call(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, str] | None = None,
        content: Json | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        order = _Order(method, path, parameters, self._limit(self._seconds))
        if content is not None:
            order = replace(order, body=orjson.dumps(content), headers={"Content-Type": content_type})
        async with self._send(order) as response:
            return Answer(response.status, await response.read())

    @asynccontextmanager
    async def stream(
        self, path: str, parameters: Mapping[str, str], seconds: float | None
    ) -> AsyncIterator[Stream]:
        """`seconds` from one piece to the next; None: for ever."""
        async with self._send(_Order("GET", path, parameters, self._limit(seconds))) as response:
            yield Stream(response.status, response)

    @asynccontextmanager
    async def websocket(
        self, path: str, parameters: Sequence[tuple[str, str]], protocols: Sequence[str]
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        with _translated_errors():
            value = await self._authorize()
            try:
                session = await self._open_websocket(path, parameters, protocols, value)
            except aiohttp.WSServerHandshakeError as error:
                if error.status != HTTPStatus.UNAUTHORIZED or not self._credentials.renew(value):
                    raise
                session = await self._open_websocket(path, parameters, protocols, await self._authorize())
            async with session:
                yield session

    async def _open_websocket(
        self, path: str, parameters: Sequence[tuple[str, str]], protocols: Sequence[str], value: str
    ) -> aiohttp.ClientWebSocketResponse:
        return await self._http.ws_connect(
            self._server + path,
            params=parameters,
            protocols=protocols,
            headers=_headers({}, value),
            timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_SECONDS),
        )

    @asynccontextmanager
    async def _send(self, order: _Order) -> AsyncIterator[aiohttp.ClientResponse]:
        """With renewed credentials once, if those that we have are refused."""
        with _translated_errors():
            for tries in range(2):
                value = await self._authorize()
                async with self._http.request(
                    order.method,
                    self._server + order.path,
                    params=order.parameters,
                    data=order.body,
                    headers=_headers(order.headers, value),
                    timeout=order.limits,
                    allow_redirects=False,
                ) as response:
                    is_refused = response.status == HTTPStatus.UNAUTHORIZED
                    if is_refused and not tries and self._credentials.renew(value):
                        continue
                    yield response
                    return

    async def _authorize(self) -> str:
        if self._http.closed:
            # A call may outlive its client: one that failed together with others leaves those on their way.
            raise ClusterUnavailable("kubernetes_not_open")
        return await self._credentials.authorize()

    def _limit(self, seconds: float | None) -> aiohttp.ClientTimeout:
        return aiohttp.ClientTimeout(total=None, connect=self._seconds, sock_read=seconds)


def _headers(others: Mapping[str, str], authorization: str) -> dict[str, str]:
    return {**others, "Authorization": authorization} if authorization else dict(others)


class _Connector(aiohttp.TCPConnector):
    """Drops a connection that was given up at once.

    aiohttp leaves it to the end of TLS, which takes an answer of the server and may outlive the event loop.
    """

    @override
    def _release(self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        is_over = should_close or protocol.should_close
        if is_over:
            protocol.abort()
        super()._release(key, protocol, should_close=is_over)


@asynccontextmanager
async def open_connection(config: Kubeconfig) -> AsyncIterator[Connection]:
    context, credentials = config.make_tls_context(), config.make_credentials()
    # As many connections as there are calls at once.
    connector = _Connector(ssl=context, limit=0, keepalive_timeout=_IDLE_SECONDS)
    session = aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), proxy=find_proxy(config.server)
    )
    async with session as http:
        yield Connection(http, config.server, credentials)


def find_proxy(server: str) -> str | None:
    """The one that the environment names for this address."""
    url = urlsplit(server)
    proxies = getproxies()
    if not proxies or proxy_bypass(url.netloc):
        return None
    return proxies.get(url.scheme) or proxies.get("all")


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except aiohttp.ConnectionTimeoutError as error:
        raise Unanswered(fact("connect_timeout")) from error
    except aiohttp.SocketTimeoutError as error:
        raise Unanswered(fact("answer_timeout"), is_timeout=True) from error
    except aiohttp.WSServerHandshakeError as error:
        raise Unanswered(fact("answered_with_status", status=error.status)) from error
    except (aiohttp.ClientError, OSError) as error:
        raise Unanswered(str(error) or type(error).__name__) from error
