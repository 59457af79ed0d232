"""Bytes between two open files, as a program of OpenSSH's has them, and a WebSocket.

One loop without threads: what cannot be written yet keeps its own source from being read, and nothing else.
The end of the input is passed on while the other direction goes on, and the other way round.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
from collections import deque
from collections.abc import Iterator

from gpudev.client.errors import ClientError, Unreachable
from gpudev.client.websocket import Frame, FrameReader, Opcode, make_frame
from gpudev.wire.tunnel import END_OF_STREAM, NORMAL_END

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
