"""HTTP/1.1 on one connection: a request out, an answer in, and nothing that a command line has to wait for.

The standard library's `http.client` reads headers with its parser of mail, and loads TLS for plain addresses,
too: about a fifth of the time of a `gpu-dev list`. What our server and the proxies before it speak is small:
answers with a length, in chunks, or until the connection ends.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path

_LONGEST_LINE = 65536
_MOST_HEADERS = 200
_WITHOUT_BODY = frozenset({204, 304})
_FIRST_FINAL = 200
"""Lower statuses announce another answer."""
_LONGEST_SLEEP = 0.5
"""Seconds in one call of the system. A Ctrl-C that comes just before such a call is noticed only after it."""


class BadAnswer(Exception):
    """What came is not HTTP, or ended too soon."""


class ConnectionEnded(BadAnswer):
    """The other side closed the connection before it answered."""


Via = Callable[[float], socket.socket]
"""Makes the connection in another way than directly, within so many seconds; through a proxy for example."""


class Answer:
    """Status and headers; the body is read by whoever wants it, as a whole or line by line."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.status, version = _read_status(connection)
        while self.status < _FIRST_FINAL:
            _read_headers(connection)
            self.status, version = _read_status(connection)
        self._headers = _read_headers(connection)
        self._is_chunked = self._headers.get("transfer-encoding", "").lower() == "chunked"
        self._left = self._find_length()
        """Bytes of the body, or of the present chunk, that are still to come; None: until the end."""
        self._has_chunk = False
        self._line = b""
        words = self._headers.get("connection", "").lower()
        self.ends_connection = self._left is None or "close" in words or version == "HTTP/1.0"

    def get_header(self, name: str) -> str | None:
        return self._headers.get(name.lower())

    def read(self) -> bytes:
        pieces = [self._line]
        while piece := self._read_piece():
            pieces.append(piece)
        if self.ends_connection:
            self._connection.close()
        return b"".join(pieces)

    def read_line(self) -> bytes:
        """With its end; empty when nothing more comes."""
        while b"\n" not in self._line:
            piece = self._read_piece()
            if not piece:
                rest, self._line = self._line, b""
                return rest
            self._line += piece
        line, end, self._line = self._line.partition(b"\n")
        return line + end

    def _find_length(self) -> int | None:
        if self.status in _WITHOUT_BODY or self._is_chunked:
            return 0
        length = self._headers.get("content-length")
        if length is None:
            return None
        if not length.isdecimal():
            raise BadAnswer(f"it names {length!r} as the length of its answer")
        return int(length)

    def _read_piece(self) -> bytes:
        """The next bytes, as many as one step brings; empty at the end of the body."""
        if self._is_chunked and not self._left:
            self._left = self._begin_chunk()
        if self._left == 0:
            return b""
        piece = self._connection.read(self._left)
        if self._left is None:
            return piece
        if not piece:
            raise ConnectionEnded
        self._left -= len(piece)
        return piece

    def _begin_chunk(self) -> int:
        """Its length. The end of the line before it is read now: whoever waits for that waits too long."""
        if self._has_chunk:
            self._connection.read_line()
        self._has_chunk = True
        size = self._connection.read_line().partition(b";")[0].strip()
        if not size:
            raise ConnectionEnded
        try:
            length = int(size, 16)
        except ValueError as error:
            raise BadAnswer(f"it names {size!r} as the length of a chunk") from error
        if length == 0:
            self._is_chunked = False
            _read_headers(self._connection)
        return length


class Connection:
    """To one server, open until it is closed. Everything raises `OSError` or `BadAnswer`."""

    def __init__(self, scheme: str, host: str, port: int, seconds: float, via: Via | None = None) -> None:
        self._socket = via(seconds) if via is not None else dial(host, port, seconds)
        if scheme == "https":
            self._socket = _secure(self._socket, host)
        self._received = b""
        """What came in and was not asked for yet."""
        self.is_open = True

    def set_patience(self, seconds: float) -> None:
        """How long each step may take from now on."""
        self._socket.settimeout(seconds)

    def ask(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> Answer:
        sent = {**headers, "Content-Length": str(len(body))} if body is not None else headers
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
        if any("\r" in line or "\n" in line for line in lines):
            raise BadAnswer("a header of ours would have more than one line")
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b""))
        return Answer(self)

    def read(self, most: int | None) -> bytes:
        """What is there, or the next that comes, up to so many bytes; empty at the end."""
        if not self._received:
            self._receive()
        end = len(self._received) if most is None else most
        piece, self._received = self._received[:end], self._received[end:]
        return piece

    def read_line(self) -> bytes:
        """With its end; what is left when nothing more comes."""
        while b"\n" not in self._received and len(self._received) < _LONGEST_LINE:
            if not self._receive():
                break
        line, end, rest = self._received.partition(b"\n")
        if len(line) >= _LONGEST_LINE:
            raise BadAnswer("a line of its answer has no end")
        self._received = rest
        return line + end

    def _receive(self) -> bool:
        """Whether anything came."""
        _wait_for_bytes(self._socket)
        piece = self._socket.recv(_LONGEST_LINE)
        self._received += piece
        return bool(piece)

    def release(self) -> socket.socket:
        """The bare connection, of which nothing was read yet; it is the caller's from now on."""
        self.is_open = False
        return self._socket

    def shut_down(self) -> None:
        """Whoever reads from it, in another thread, reads no more."""
        with contextlib.suppress(OSError):  # it may be closed by now
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.is_open = False
        self._socket.close()


def dial(host: str, port: int, seconds: float) -> socket.socket:
    # As bytes: the resolver would otherwise load a codec for international names to look at plain ones.
    name = host.encode("ascii" if host.isascii() else "idna")
    connection = socket.create_connection((name, port), seconds)  # type: ignore[arg-type]  # it takes bytes
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _wait_for_bytes(source: socket.socket) -> None:
    """Until there is something to read, in short sleeps, as long as the socket's timeout allows."""
    pending = getattr(source, "pending", None)
    if pending is not None and pending():  # TLS has bytes that the system knows nothing of any more
        return
    poll = select.poll()
    poll.register(source, select.POLLIN)
    seconds = source.gettimeout()
    deadline = None if seconds is None else time.monotonic() + seconds
    while not poll.poll(_LONGEST_SLEEP * 1000):
        if deadline is not None and time.monotonic() >= deadline:
            raise TimeoutError("timed out")


def dial_unix(path: Path, seconds: float) -> socket.socket:
    """To a unix socket. Its folder is opened first: the address of a socket holds only 107 bytes."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect(f"/proc/self/fd/{folder}/{path.name}")
    except OSError:
        connection.close()
        raise
    finally:
        os.close(folder)
    return connection


def _secure(plain: socket.socket, host: str) -> socket.socket:
    import ssl  # noqa: PLC0415 - only who talks to a server elsewhere pays for it

    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    try:
        return context.wrap_socket(plain, server_hostname=host)
    except OSError:
        plain.close()
        raise


def _read_status(connection: Connection) -> tuple[int, str]:
    line = connection.read_line().decode("latin-1")
    if not line:
        raise ConnectionEnded
    version, _, rest = line.partition(" ")
    status = rest.partition(" ")[0].strip()
    if not version.startswith("HTTP/1.") or not status.isdecimal():
        raise BadAnswer("its answer is not HTTP")
    return int(status), version


def _read_headers(connection: Connection) -> dict[str, str]:
    headers: dict[str, str] = {}
    for _ in range(_MOST_HEADERS):
        line = connection.read_line().decode("latin-1")
        if not line:
            raise ConnectionEnded
        if not line.strip():
            return headers
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    raise BadAnswer("its answer has too many headers")
