"""A tunnel to a dev server through the SSH proxy, as OpenSSH's `ProxyCommand` wants it.

Bytes go between two open files, as a program of OpenSSH's has them, and a WebSocket, in one loop without
threads: what cannot be written yet keeps its own source from being read, and nothing else. The end of the
input is passed on while the other direction goes on, and the other way round.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

from gpudev.client.errors import ClientError, ServerFailed, Unreachable, error_of
from gpudev.client.http import Http, Request
from gpudev.client.redirects import MOST_HOPS, REDIRECTS, find_target, too_many
from gpudev.client.session import UNAUTHENTICATED, Client
from gpudev.client.ssh import check_proxy_url
from gpudev.client.websocket import (
    END_OF_HEAD,
    SWITCHING_PROTOCOLS,
    Frame,
    FrameReader,
    Head,
    Opcode,
    Upgrade,
    make_frame,
)
from gpudev.wire.tunnel import END_OF_STREAM, NORMAL_END, SUBPROTOCOL, tunnel_path

CHUNK = 128 * 1024

_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR
_WRITABLE = select.POLLOUT | select.POLLHUP | select.POLLERR


class Relay:
    """`connection` is a WebSocket by now; `early` came with the answer that made it one."""

    def __init__(self, connection: socket.socket, early: bytes, source: int, sink: int) -> None:
        self._connection = connection
        self._would_block = _signs_of_waiting(connection)
        self._early = early
        self._source = source
        self._sink = sink
        self._reader = FrameReader()
        self._to_server = memoryview(b"")
        self._to_sink: deque[bytes | memoryview] = deque()
        self._replies: deque[bytes] = deque()
        self._source_ended = False
        self._server_ended = False
        self._sink_closed = False
        self._is_over = False

    def run(self) -> None:
        """Until both directions have ended. `ClientError` in the proxy's words if it ends it for a reason."""
        with _non_blocking(self._source), _non_blocking(self._sink):
            self._connection.setblocking(False)
            self._take(self._early)
            while not self._is_over:
                self._turn(self._wait())
            self._say_goodbye()

    def _say_goodbye(self) -> None:
        """In the words of a WebSocket, if they can be sent at once; the proxy understands silence as well."""
        with contextlib.suppress(OSError):
            self._connection.send(make_frame(Opcode.CLOSE, struct.pack("!H", NORMAL_END)))

    def _wait(self) -> dict[int, int]:
        """Which of the files are ready for what is wanted of them."""
        poll = select.poll()
        for file, events in self._wanted().items():
            poll.register(file, events)
        if self._to_sink or not self._has_decrypted:
            return dict(poll.poll())
        connection = self._connection.fileno()
        ready = dict(poll.poll(0))
        return {**ready, connection: ready.get(connection, 0) | select.POLLIN}

    @property
    def _has_decrypted(self) -> bool:
        """What TLS holds already is no longer seen by `poll`."""
        return bool(self._would_block[1:]) and self._connection.pending() > 0  # type: ignore[attr-defined]  # of TLS

    def _wanted(self) -> dict[int, int]:
        wanted = {self._connection.fileno(): 0}
        if not self._to_sink:
            wanted[self._connection.fileno()] |= select.POLLIN
        if self._has_output:
            wanted[self._connection.fileno()] |= select.POLLOUT
        if self._to_sink:
            wanted[self._sink] = select.POLLOUT
        if not self._has_output and not self._source_ended:
            wanted[self._source] = wanted.get(self._source, 0) | select.POLLIN
        return wanted

    @property
    def _has_output(self) -> bool:
        return bool(self._to_server or self._replies)

    def _turn(self, ready: dict[int, int]) -> None:
        if self._to_sink and ready.get(self._sink, 0) & _WRITABLE:
            self._write_sink()
        if not self._has_output and not self._source_ended and ready.get(self._source, 0) & _READABLE:
            self._read_source()
        if self._has_output:
            self._send()
        if not self._to_sink and ready.get(self._connection.fileno(), 0) & _READABLE:
            self._receive()

    def _read_source(self) -> None:
        try:
            data = os.read(self._source, CHUNK)
        except BlockingIOError:
            return
        if data:
            self._to_server = memoryview(make_frame(Opcode.BINARY, data))
        else:
            self._source_ended = True
            self._replies.append(make_frame(Opcode.TEXT, END_OF_STREAM.encode()))
            self._end_if_all_ended()

    def _send(self) -> None:
        if not self._to_server:
            self._to_server = memoryview(self._replies.popleft())
        try:
            self._to_server = self._to_server[self._connection.send(self._to_server) :]
        except self._would_block:
            return
        except OSError as error:
            raise _lost(error) from error

    def _receive(self) -> None:
        try:
            data = self._connection.recv(CHUNK)
        except self._would_block:
            return
        except OSError as error:
            raise _lost(error) from error
        if not data:
            raise _lost(None)
        self._take(data)

    def _take(self, data: bytes) -> None:
        for frame in self._reader.feed(data):
            self._take_frame(frame)
        if self._to_sink:
            self._write_sink()

    def _take_frame(self, frame: Frame) -> None:
        match frame.opcode:
            case Opcode.BINARY:
                self._to_sink.append(frame.payload)
            case Opcode.TEXT if frame.payload == END_OF_STREAM.encode():
                self._server_ended = True
                self._end_if_all_ended()
            case Opcode.PING:
                self._replies.append(make_frame(Opcode.PONG, bytes(frame.payload)))
            case Opcode.CLOSE:
                self._is_over = True
                _check_end(bytes(frame.payload))

    def _write_sink(self) -> None:
        try:
            while self._to_sink:
                written = os.write(self._sink, self._to_sink[0])
                left = memoryview(self._to_sink.popleft())[written:]
                if left:
                    self._to_sink.appendleft(left)
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._to_sink.clear()
            self._is_over = True
        self._end_if_all_ended()

    def _end_if_all_ended(self) -> None:
        """A server that has ended is told so to whoever reads, once they have all that it sent."""
        if self._server_ended and not self._to_sink and not self._sink_closed:
            self._sink_closed = True
            _end_file(self._sink)
        if self._sink_closed and self._source_ended:
            self._is_over = True


def _signs_of_waiting(connection: socket.socket) -> tuple[type[OSError], ...]:
    """By which a connection says that it would have to wait: TLS has signs of its own."""
    if type(connection) is socket.socket:
        return (BlockingIOError,)
    import ssl  # noqa: PLC0415 - loaded already where there is TLS, and not wanted elsewhere

    return (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def _check_end(payload: bytes) -> None:
    (code,) = struct.unpack("!H", payload[:2]) if len(payload) > 1 else (NORMAL_END,)
    reason = payload[2:].decode(errors="replace")
    if code != NORMAL_END:
        raise ClientError(reason or f"The SSH proxy ended the connection ({code}).", code="tunnel_ended")


def _lost(error: OSError | None) -> Unreachable:
    why = f": {error.strerror or error}" if error else ""
    return Unreachable(f"The connection to the SSH proxy was lost{why}.", hint="Connect again.")


@contextlib.contextmanager
def _non_blocking(file: int) -> Iterator[None]:
    """As it was afterwards: a terminal is shared with the shell."""
    before = os.get_blocking(file)
    os.set_blocking(file, False)
    try:
        yield
    finally:
        os.set_blocking(file, before)


def _end_file(file: int) -> None:
    """Close what it leads to; its number stays taken, so that nothing else is written to by mistake."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, file)
    os.close(nowhere)


_LONGEST_HEAD = 64 * 1024
_LONGEST_REFUSAL = 64 * 1024


@dataclass(frozen=True, slots=True)
class Tunnel:
    """An open one. `early` came together with the answer that opened it."""

    connection: socket.socket = field(repr=False)
    early: bytes = field(repr=False)

    def relay(self, source: int, sink: int) -> None:
        """Between it and two open files, until both directions have ended."""
        with self.connection:
            Relay(self.connection, self.early, source, sink).run()


def open_tunnel(client: Client, proxy_url: str, reservation: str, rank: int) -> Tunnel:
    """As the user of this client; logs in once more if the key has ended."""
    proxy = Http(check_proxy_url(proxy_url, client.target.api_url))
    path = f"{proxy.prefix}{tunnel_path(quote(reservation, safe=''), rank)}"
    refusal = _follow(proxy, path, client.authorisation())
    if isinstance(refusal, _Refusal) and refusal.status == UNAUTHENTICATED:
        client.log_in()
        refusal = _follow(proxy, path, client.authorisation())
    if isinstance(refusal, _Refusal):
        raise error_of(refusal.status, refusal.body)
    return refusal


@dataclass(frozen=True, slots=True)
class _Refusal:
    status: int
    body: bytes
    location: str | None = None


def _follow(proxy: Http, path: str, authorisation: str) -> Tunnel | _Refusal:
    for _ in range(MOST_HOPS + 1):
        answer = _ask(proxy, path, authorisation)
        if isinstance(answer, Tunnel) or answer.status not in REDIRECTS or answer.location is None:
            return answer
        path = find_target(proxy.address_of(Request("GET", path, is_whole=True)), answer.location)
    raise too_many(proxy.address_of(Request("GET", path, is_whole=True)))


def _ask(proxy: Http, path: str, authorisation: str) -> Tunnel | _Refusal:
    upgrade = Upgrade.new(SUBPROTOCOL)
    headers = {"Host": proxy.authority, "Authorization": authorisation, **proxy.own_headers}
    connection = proxy.dial()
    try:
        with proxy.translated_errors():
            connection.sendall(upgrade.request(path, headers))
            head, rest = _read_head(connection)
            if head.status != SWITCHING_PROTOCOLS:
                body = _read_refusal(connection, head, rest)
                refusal = _Refusal(head.status, body, head.headers.get("location"))
                connection.close()
                return refusal
        upgrade.check(head.headers)
    except (Unreachable, ServerFailed):
        connection.close()
        raise
    return Tunnel(connection, rest)


def _read_head(connection: socket.socket) -> tuple[Head, bytes]:
    received = b""
    while END_OF_HEAD not in received:
        data = connection.recv(4096)
        if not data or len(received) > _LONGEST_HEAD:
            raise ServerFailed("The SSH proxy ended the connection instead of an answer.")
        received += data
    head, _, rest = received.partition(END_OF_HEAD)
    return Head.parse(head), rest


def _read_refusal(connection: socket.socket, head: Head, received: bytes) -> bytes:
    length = head.headers.get("content-length", "")
    wanted = min(int(length), _LONGEST_REFUSAL) if length.isdecimal() else 0
    while len(received) < wanted and (data := connection.recv(4096)):
        received += data
    return received
