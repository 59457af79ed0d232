"""Load from a process of its own: some connections, each asking again as soon as it is answered.

    python -m bench.load        reads an order as JSON from standard input, and writes what it saw

It sends bytes that were made beforehand and looks only at the status and the length of an answer, so that it
takes as little as it can of the cores that it shares with what it measures.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import cast

import uvloop
from typing_extensions import override

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: (\d+)")
_END_OF_HEAD = b"\r\n\r\n"
_PATIENCE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Order:
    host: str
    port: int
    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""
    connections: int = 16
    seconds: float = 1.0

    def request(self) -> bytes:
        headers = {"Host": f"{self.host}:{self.port}", **self.headers}
        if self.body:
            headers |= {"Content-Type": "application/json", "Content-Length": str(len(self.body.encode()))}
        lines = [f"{name}: {text}" for name, text in headers.items()]
        return "\r\n".join([f"{self.method} {self.path} HTTP/1.1", *lines, "", self.body]).encode()


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of an order: the latency of each answer, and the answers by status."""

    elapsed: float
    latencies: list[float]
    statuses: dict[str, int]


def run_load(order: Order) -> Seen:
    done = subprocess.run(
        [sys.executable, "-m", "bench.load"],
        input=json.dumps(asdict(order)),
        capture_output=True,
        text=True,
        timeout=order.seconds + _PATIENCE_SECONDS,
        check=True,
    )
    return Seen(**json.loads(done.stdout))


class _Asker(asyncio.Protocol):
    """One connection."""

    def __init__(self, request: bytes, until: float, latencies: list[float], statuses: Counter[str]) -> None:
        self._request = request
        self._until = until
        self._latencies = latencies
        self._statuses = statuses
        self._pending = b""
        self._asked_at = 0.0
        self.done = asyncio.get_running_loop().create_future()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's own transports are no subclasses of asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._ask()

    @override
    def data_received(self, data: bytes) -> None:
        self._pending += data
        head, found, rest = self._pending.partition(_END_OF_HEAD)
        if not found:
            return
        length = _LENGTH.search(head)
        if len(rest) < (int(length[1]) if length else 0):
            return
        now = time.perf_counter()
        self._latencies.append(now - self._asked_at)
        self._statuses[head[9:12].decode()] += 1
        self._pending = b""
        if now < self._until:
            self._ask()
        else:
            self._transport.close()

    @override
    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(error)

    def _ask(self) -> None:
        self._asked_at = time.perf_counter()
        self._transport.write(self._request)


async def _load(order: Order) -> Seen:
    loop = asyncio.get_running_loop()
    latencies: list[float] = []
    statuses: Counter[str] = Counter()
    began = time.perf_counter()

    def make_asker() -> _Asker:
        return _Asker(order.request(), began + order.seconds, latencies, statuses)

    askers: list[_Asker] = []
    for _ in range(order.connections):
        _, asker = await loop.create_connection(make_asker, order.host, order.port)
        askers.append(asker)
    async with asyncio.timeout(order.seconds + _PATIENCE_SECONDS):
        await asyncio.gather(*(asker.done for asker in askers))
    return Seen(time.perf_counter() - began, latencies, dict(statuses))


def main() -> None:
    seen = uvloop.run(_load(Order(**json.load(sys.stdin))))
    json.dump(asdict(seen), sys.stdout)


if __name__ == "__main__":
    main()
