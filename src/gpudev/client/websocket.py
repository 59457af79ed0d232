"""The client's side of a WebSocket, RFC 6455, as far as a tunnel needs it: bytes in, bytes out, no sockets.

Messages are not put together: of a binary one each piece is given out as it comes, since a tunnel does not
care where its bytes were cut.
"""

from __future__ import annotations

import base64
import hashlib
import os
import struct
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from gpudev.client.errors import ServerFailed

SWITCHING_PROTOCOLS = 101
END_OF_HEAD = b"\r\n\r\n"

_ACCEPT_SUFFIX = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_FINAL, _MASKED, _LENGTH = 0x80, 0x80, 0x7F
_TWO_BYTES, _EIGHT_BYTES = 126, 127
_LONGEST_WORDS = 4096
"""Nobody sends a longer text here; what does is not our proxy."""


class Opcode(IntEnum):
    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


class Frame(NamedTuple):
    """A whole frame of words or control, or a piece of the bytes."""

    opcode: Opcode
    payload: bytes | memoryview


class Upgrade(NamedTuple):
    """A request for a WebSocket, and how to know that the answer is one to it."""

    nonce: str
    subprotocol: str

    @classmethod
    def new(cls, subprotocol: str) -> Upgrade:
        return cls(base64.b64encode(os.urandom(16)).decode(), subprotocol)

    def request(self, path: str, headers: Mapping[str, str]) -> bytes:
        own = {
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": self.nonce,
            "Sec-WebSocket-Protocol": self.subprotocol,
        }
        lines = [f"{name}: {text}" for name, text in {**headers, **own}.items()]
        return "\r\n".join([f"GET {path} HTTP/1.1", *lines, "", ""]).encode("ascii")

    def check(self, headers: Mapping[str, str]) -> None:
        digest = hashlib.sha1(self.nonce.encode() + _ACCEPT_SUFFIX, usedforsecurity=False).digest()
        expected = (base64.b64encode(digest).decode(), self.subprotocol)
        if (headers.get("sec-websocket-accept"), headers.get("sec-websocket-protocol")) != expected:
            raise ServerFailed("What answers at the address of the SSH proxy is something else.")


class Head(NamedTuple):
    """The head of an HTTP answer, the names of its headers in lower case."""

    status: int
    headers: Mapping[str, str]

    @classmethod
    def parse(cls, text: bytes) -> Head:
        first, _, rest = text.partition(b"\r\n")
        words = first.split(None, 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():  # noqa: PLR2004
            raise ServerFailed("What answers at the address of the SSH proxy does not speak HTTP.")
        pairs = (line.partition(":") for line in rest.decode("latin-1").split("\r\n"))
        return cls(int(words[1]), {name.strip().lower(): value.strip() for name, _, value in pairs})


def make_frame(opcode: Opcode, payload: bytes) -> bytes:
    """One whole message, masked, as whatever a client sends must be."""
    length = len(payload)
    if length < _TWO_BYTES:
        head = struct.pack("!BB", _FINAL | opcode, _MASKED | length)
    elif length <= 0xFFFF:  # noqa: PLR2004 - what two bytes hold
        head = struct.pack("!BBH", _FINAL | opcode, _MASKED | _TWO_BYTES, length)
    else:
        head = struct.pack("!BBQ", _FINAL | opcode, _MASKED | _EIGHT_BYTES, length)
    key = os.urandom(4)
    return b"".join((head, key, mask(payload, key)))


def mask(payload: bytes, key: bytes) -> bytearray:
    """Each byte with its byte of the key, by tables: the fastest that plain Python has to offer."""
    masked = bytearray(len(payload))
    for index, byte in enumerate(key):
        masked[index::4] = payload[index::4].translate(_xor_table(byte))
    return masked


_TABLES: dict[int, bytes] = {}


def _xor_table(byte: int) -> bytes:
    table = _TABLES.get(byte)
    if table is None:
        table = _TABLES[byte] = bytes(byte ^ other for other in range(256))
    return table


class FrameReader:
    """What the server sends, cut into frames."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._opcode = Opcode.CONTINUATION
        self._message = Opcode.BINARY
        """What the message is that frames of continuation belong to."""
        self._left: int | None = None
        """How much of a frame is still to come; None: its head is."""
        self._words = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        rest = memoryview(data)
        while rest or self._left == 0:
            if self._left is None:
                rest = self._take_head(rest)
                continue
            piece, rest = rest[: self._left], rest[self._left :]
            self._left -= len(piece)
            yield from self._take_piece(piece)
            if self._left == 0:
                self._left = None

    def _take_head(self, data: memoryview) -> memoryview:
        missing = _head_length(self._head) - len(self._head)
        self._head += data[:missing]
        if len(self._head) == _head_length(self._head):
            self._begin(bytes(self._head))
            self._head.clear()
        return data[missing:]

    def _begin(self, head: bytes) -> None:
        first, second = head[0], head[1]
        if second & _MASKED or first & 0x70 or first & 0x0F not in Opcode.__members__.values():
            raise ServerFailed("The SSH proxy sent what no WebSocket server sends.")
        self._left = int.from_bytes(head[2:], "big") if len(head) > 2 else second & _LENGTH  # noqa: PLR2004
        self._opcode = Opcode(first & 0x0F)
        if self._opcode in {Opcode.TEXT, Opcode.BINARY}:
            self._message = self._opcode
        elif self._opcode is Opcode.CONTINUATION:
            self._opcode = self._message
        if self._opcode is not Opcode.BINARY and self._left > _LONGEST_WORDS:
            raise ServerFailed("The SSH proxy sent more words than it ever has.")

    def _take_piece(self, piece: memoryview) -> Iterator[Frame]:
        if self._opcode is Opcode.BINARY:
            if piece:
                yield Frame(Opcode.BINARY, piece)
            return
        self._words += piece
        if self._left == 0:
            yield Frame(self._opcode, bytes(self._words))
            self._words.clear()


def _head_length(head: bytearray) -> int:
    """As far as is known from what there is of it."""
    length = head[1] & _LENGTH if len(head) > 1 else 0
    return {_TWO_BYTES: 4, _EIGHT_BYTES: 10}.get(length, 2)
