"""The loop between OpenSSH's pipes and the proxy: both directions, slow readers, and ends of every kind."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import pytest
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from gpudev.client.errors import ClientError, Unreachable
from gpudev.client.tunnel import Relay
from gpudev.wire.tunnel import END_OF_STREAM, IDLE

DEADLINE_SECONDS = 30
MEBIBYTE = 1 << 20


@dataclass(slots=True)
class Ends:
    """What a relay connects, seen from outside: its input, its output and the proxy."""

    typed: int
    shown: int
    proxy: socket.socket
    thread: threading.Thread
    failures: list[ClientError]
    protocol: ServerProtocol = field(default_factory=lambda: ServerProtocol(state=OPEN, max_size=None))
    """What the proxy sends; what it receives goes through another, since threads do both at once."""
    receiving: ServerProtocol = field(default_factory=lambda: ServerProtocol(state=OPEN, max_size=None))
    received: deque[Frame] = field(default_factory=deque)

    def send(self, data: bytes) -> None:
        self.protocol.send_binary(data)
        self.flush()

    def flush(self) -> None:
        for data in self.protocol.data_to_send():
            self.proxy.sendall(data)

    def receive(self) -> Frame:
        """The next frame that comes from the relay."""
        while not self.received:
            data = self.proxy.recv(MEBIBYTE)
            assert data, "the relay has ended"
            self.receiving.receive_data(data)
            self.received.extend(cast("list[Frame]", self.receiving.events_received()))
        return self.received.popleft()

    def join(self) -> None:
        self.thread.join(DEADLINE_SECONDS)
        assert not self.thread.is_alive()


@pytest.fixture
def ends() -> Iterator[Ends]:
    source, typed = os.pipe()
    shown, sink = os.pipe()
    ours, theirs = socket.socketpair()
    theirs.settimeout(DEADLINE_SECONDS)
    failures: list[ClientError] = []

    def run() -> None:
        try:
            Relay(ours, b"", source, sink).run()
        except ClientError as error:
            failures.append(error)
        finally:
            ours.close()
            os.close(source)
            os.close(sink)

    thread = threading.Thread(target=run)
    thread.start()
    relay = Ends(typed, shown, theirs, thread, failures)
    yield relay
    theirs.close()
    relay.join()
    for file in (typed, shown):
        try:
            os.close(file)
        except OSError:
            continue  # The test has closed it.


def read_all(file: int) -> bytes:
    pieces = []
    while piece := os.read(file, MEBIBYTE):
        pieces.append(piece)
    return b"".join(pieces)


def test_bytes_pass_both_ways(ends: Ends) -> None:
    os.write(ends.typed, b"hello")
    assert ends.receive().data == b"hello"
    ends.send(b"welcome")
    assert os.read(ends.shown, 100) == b"welcome"


def test_a_ping_is_answered_with_its_own_words(ends: Ends) -> None:
    ends.protocol.send_ping(b"there?")
    ends.flush()
    frame = ends.receive()
    assert (frame.opcode, frame.data) == (Opcode.PONG, b"there?")


def test_the_end_of_the_input_is_told_and_the_output_goes_on(ends: Ends) -> None:
    os.close(ends.typed)
    frame = ends.receive()
    assert (frame.opcode, frame.data) == (Opcode.TEXT, END_OF_STREAM.encode())
    ends.send(b"late words")
    ends.protocol.send_text(END_OF_STREAM.encode())
    ends.flush()
    assert read_all(ends.shown) == b"late words"
    ends.join()
    assert ends.failures == []


def test_the_end_of_the_output_is_told_and_the_input_goes_on(ends: Ends) -> None:
    ends.send(b"last")
    ends.protocol.send_text(END_OF_STREAM.encode())
    ends.flush()
    assert read_all(ends.shown) == b"last"
    os.write(ends.typed, b"still here")
    assert ends.receive().data == b"still here"


def test_nothing_is_lost_while_nobody_reads(ends: Ends) -> None:
    """More than all buffers together hold, in both directions at once, and no side waits for the other."""
    content = os.urandom(4 * MEBIBYTE)
    writers = [
        threading.Thread(target=write_all, args=(ends.typed, content)),
        threading.Thread(target=ends.send, args=(content,)),
    ]
    for writer in writers:
        writer.start()
    received = bytearray()
    while len(received) < len(content):
        received += ends.receive().data
    shown = bytearray()
    while len(shown) < len(content):
        shown += os.read(ends.shown, MEBIBYTE)
    for writer in writers:
        writer.join(DEADLINE_SECONDS)
    assert bytes(received) == content
    assert bytes(shown) == content


def write_all(file: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(file, left) :]


def test_a_proxy_that_ends_it_is_quoted(ends: Ends) -> None:
    ends.protocol.send_close(IDLE, "Nothing has passed for 60 minutes.")
    ends.flush()
    ends.join()
    assert [error.message for error in ends.failures] == ["Nothing has passed for 60 minutes."]


def test_a_proxy_that_is_gone_is_said_to_be(ends: Ends) -> None:
    ends.proxy.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    ends.proxy.close()
    ends.join()
    assert isinstance(ends.failures[0], Unreachable)


def test_it_ends_when_nobody_wants_the_output_any_more(ends: Ends) -> None:
    os.close(ends.shown)
    ends.send(b"for nobody")
    ends.join()
    assert ends.failures == []
