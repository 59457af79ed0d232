"""What servers and proxies may send, byte by byte."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from gpudev.client.transport import Answer, BadAnswer, Connection, ConnectionEnded

Serve = Callable[[bytes], Connection]

ENOUGH_LOOKS = 100
PATIENCE = 5.0
"""Seconds until a server answers that was asked by somebody who wants to leave."""
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A server that reads one request, sends these bytes and closes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        opened: list[Connection] = []
        threads: list[threading.Thread] = []

        def answer(sent: bytes) -> None:
            accepted, _ = listener.accept()
            with accepted:
                accepted.recv(65536)
                accepted.sendall(sent)

        def start(sent: bytes) -> Connection:
            thread = threading.Thread(target=answer, args=(sent,))
            thread.start()
            threads.append(thread)
            opened.append(Connection("http", "127.0.0.1", listener.getsockname()[1], 10.0))
            return opened[-1]

        yield start
        for connection in opened:
            connection.close()
        for thread in threads:
            thread.join()


def ask(connection: Connection) -> Answer:
    return connection.ask("GET", "/", {"Host": "x"}, None)


@pytest.mark.parametrize(
    "sent, body, stays_open",
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", b"abc", True),
        (b"HTTP/1.1 200 OK\r\ncontent-length:3\r\nConnection: close\r\n\r\nabc", b"abc", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", b"abc", False),
        (b"HTTP/1.1 200\r\n\r\nuntil the end", b"until the end", False),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
        (
            CHUNKED + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
            b"abcde",
            True,
        ),
        (
            CHUNKED + b"1\r\na\r\n0\r\nTrailer: x\r\n\r\n",
            b"a",
            True,
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", b"a", True),
    ],
    ids=["length", "close", "1.0", "until the end", "nothing", "chunks", "trailer", "continue"],
)
def test_bodies(serve: Serve, sent: bytes, body: bytes, *, stays_open: bool) -> None:
    connection = serve(sent)
    assert ask(connection).read() == body
    assert connection.is_open is stays_open


def test_lines_may_lie_across_chunks(serve: Serve) -> None:
    chunks = b"4\r\nab\nc\r\n3\r\nd\ne\r\n0\r\n\r\n"
    answer = ask(serve(CHUNKED + chunks))
    assert [answer.read_line() for _ in range(4)] == [b"ab\n", b"cd\n", b"e", b""]


def test_headers_are_found_in_any_letter_case(serve: Serve) -> None:
    answer = ask(serve(b"HTTP/1.1 503 Busy\r\nrEtRy-AfTeR:  7 \r\nContent-Length: 0\r\n\r\n"))
    assert (answer.status, answer.get_header("Retry-After"), answer.get_header("Date")) == (503, "7", None)


@pytest.mark.parametrize(
    "sent, error",
    [
        (b"", ConnectionEnded),
        (b"HTTP/1.1 200 OK\r\nContent-Le", ConnectionEnded),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", ConnectionEnded),
        (CHUNKED + b"9\r\nabc", ConnectionEnded),
        (CHUNKED + b"3\r\nabc\r\n", ConnectionEnded),
        (CHUNKED + b"zz\r\n", BadAnswer),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", BadAnswer),
        (b"SSH-2.0-OpenSSH_9.6\r\n", BadAnswer),
        (b"HTTP/1.1 okay\r\n\r\n", BadAnswer),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 300 + b"\r\n", BadAnswer),
        (b"HTTP/1.1 200 OK\r\na: " + b"b" * 70000 + b"\r\n\r\n", BadAnswer),
    ],
    ids=[
        "nothing",
        "cut headers",
        "cut body",
        "cut chunk",
        "no last chunk",
        "bad chunk",
        "bad length",
        "ssh",
        "bad status",
        "many headers",
        "long header",
    ],
)
def test_what_is_no_answer(serve: Serve, sent: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        ask(serve(sent)).read()


def test_a_header_cannot_begin_another(serve: Serve) -> None:
    connection = serve(b"")
    with pytest.raises(BadAnswer, match="more than one line"):
        connection.ask("GET", "/", {"Authorization": "Bearer x\r\nX-Evil: 1"}, None)
    connection.shut_down()


def test_a_read_ends_when_another_thread_shuts_the_connection_down(serve: Serve) -> None:
    connection = serve(b"HTTP/1.1 200 OK\r\n\r\n")
    answer = ask(connection)
    connection.shut_down()
    assert answer.read() == b""


def wait_until_asleep(thread: int) -> None:
    """Until it stays in one call of the system, whoever else would have run meanwhile."""
    status = Path(f"/proc/self/task/{thread}/status")
    seen = [""]
    while len(seen) < ENOUGH_LOOKS:
        lines = [line for line in status.read_text().splitlines() if line.startswith(("State:", "voluntary"))]
        now = " ".join(lines) if "sleeping" in lines[0] else ""
        seen = [*seen, now] if now == seen[-1] else [now]


def test_a_ctrl_c_that_came_just_before_the_wait_ends_it() -> None:
    """Given to another thread, it interrupts no call of this one: like one that comes before the call."""
    main = threading.get_native_id()
    listener = socket.create_server(("127.0.0.1", 0))
    connection = Connection("http", "127.0.0.1", listener.getsockname()[1], 20.0)
    accepted, _ = listener.accept()
    is_over = threading.Event()
    left: list[bool] = []

    def interrupt() -> None:
        accepted.recv(65536)
        wait_until_asleep(main)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        left.append(is_over.wait(PATIENCE))
        with suppress(OSError):
            accepted.sendall(b"HTTP/1.1 204 too late\r\n\r\n")

    other = threading.Thread(target=interrupt)
    other.start()
    with accepted, listener, closing(connection):
        with pytest.raises(KeyboardInterrupt):
            ask(connection)
        is_over.set()
        other.join()
    assert left == [True], "the answer was waited for"
