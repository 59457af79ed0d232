"""What our connection to the Kubernetes API costs beside its HTTP library alone.

One small server answers them all over TLS, in a process of its own. What is compared is the CPU of the
client, in turns, since times depend on what else the machine does.
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import aiohttp
import orjson
import uvloop

from bench.figures import percentile
from bench.kubernetes_http_server import make_pod
from bench.page import Section
from gpudev.adapters.kubernetes.api_objects import Json
from gpudev.adapters.kubernetes.connection import open_connection
from gpudev.adapters.kubernetes.kubeconfig import Kubeconfig
from tests.support.kubernetes.certificates import write_certificates

TITLE = "Calls to the Kubernetes API"
COMMAND = "python -m bench kubernetes-http"
_PODS = "/api/v1/namespaces/gpu-dev/pods"
_TRUST = {"certificate-authority": "ca.crt"}
_TOKEN = "t" * 900
_HEADERS = {"Content-Type": "application/json", "Authorization": f"Bearer {_TOKEN}"}


@dataclass(frozen=True, slots=True)
class Effort:
    rounds: int = 10
    calls: int = 2000
    events: int = 16_000


QUICK = Effort(rounds=2, calls=100, events=800)


@dataclass(frozen=True, slots=True)
class Stack:
    """One way to speak HTTP: whole answers, and the chunks of a stream."""

    call: Callable[[str, str, Json | None], Awaitable[Json]]
    stream: Callable[[str, Mapping[str, str]], AsyncIterator[bytes]]


@dataclass(frozen=True, slots=True)
class Sample:
    cpu: float
    """Seconds of the client for each call or event."""
    p50: float
    rate: float


@dataclass(frozen=True, slots=True)
class Findings:
    samples: dict[tuple[str, str], list[Sample]] = field(default_factory=dict)
    """By workload and stack, in the order of the rounds."""


def measure(quick: bool = False) -> Section:  # noqa: FBT001, FBT002 - one switch, the same for every benchmark
    effort = QUICK if quick else Effort()
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_certificates(folder, (IPv4Address("127.0.0.1"),))
        with _running_server(folder) as port:
            found = uvloop.run(_measure_all(f"https://127.0.0.1:{port}", folder, effort))
    return Section(TITLE, COMMAND, report(found, effort))


@contextmanager
def _running_server(folder: Path) -> Iterator[int]:
    program = [sys.executable, "-m", "bench.kubernetes_http_server", str(folder)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.terminate()


@asynccontextmanager
async def _ours(url: str, folder: Path) -> AsyncIterator[Stack]:
    user = {"token": _TOKEN}
    async with open_connection(Kubeconfig({"server": url, **_TRUST}, user, folder)) as connection:

        async def call(method: str, path: str, body: Json | None) -> Json:
            return (await connection.call(method, path, content=body)).json

        async def stream(path: str, parameters: Mapping[str, str]) -> AsyncIterator[bytes]:
            async with connection.stream(path, parameters, 100.0) as answer:
                async for chunk in answer.chunks():
                    yield chunk

        yield Stack(call, stream)


@asynccontextmanager
async def _aiohttp_alone(url: str, folder: Path) -> AsyncIterator[Stack]:
    context = ssl.create_default_context(cafile=folder / _TRUST["certificate-authority"])
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    async with aiohttp.ClientSession(url, connector=connector, headers=_HEADERS) as http:

        async def call(method: str, path: str, body: Json | None) -> Json:
            content = orjson.dumps(body) if body is not None else None
            async with http.request(method, path, data=content) as answer:
                value: Json = orjson.loads(await answer.read())
                return value

        async def stream(path: str, parameters: Mapping[str, str]) -> AsyncIterator[bytes]:
            async with http.get(path, params=parameters) as answer:
                async for chunk in answer.content.iter_any():
                    yield chunk

        yield Stack(call, stream)


OURS, BARE = "our connection", "aiohttp alone"
STACKS: dict[str, Callable[[str, Path], AbstractAsyncContextManager[Stack]]] = {
    OURS: _ours,
    BARE: _aiohttp_alone,
}
ONE, MANY, WATCH = "one call at a time", "50 calls at once", "a watch"


async def _measure_all(url: str, folder: Path, effort: Effort) -> Findings:
    found = Findings()
    names = list(STACKS)
    for number in range(effort.rounds + 1):
        for workload in (ONE, MANY, WATCH):
            turn = number % len(names)
            for name in (*names[turn:], *names[:turn]):
                async with STACKS[name](url, folder) as stack:
                    sample = await _measure(stack, workload, effort)
                if number:  # The first round is to warm up.
                    found.samples.setdefault((workload, name), []).append(sample)
    return found


async def _measure(stack: Stack, workload: str, effort: Effort) -> Sample:
    if workload == WATCH:
        return await _measure_watch(stack, effort.events)
    await asyncio.gather(*(_call(stack, 0) for _ in range(50 if workload == MANY else 1)))
    return await _measure_calls(stack, effort.calls, at_once=50 if workload == MANY else 1)


async def _measure_calls(stack: Stack, calls: int, at_once: int) -> Sample:
    seconds: list[float] = []
    numbers = iter(range(calls))

    async def work() -> None:
        for number in numbers:
            began = time.perf_counter()
            await _call(stack, number)
            seconds.append(time.perf_counter() - began)

    began, worked = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work() for _ in range(at_once)))
    cpu, wall = time.process_time() - worked, time.perf_counter() - began
    return Sample(cpu / calls, percentile(seconds, 50), calls / wall)


async def _call(stack: Stack, number: int) -> None:
    """Every other call creates a pod."""
    answer = (
        await stack.call("POST", _PODS, POD) if number % 2 else await stack.call("GET", f"{_PODS}/p", None)
    )
    assert answer["kind"] == "Pod"


async def _measure_watch(stack: Stack, events: int) -> Sample:
    began, worked = time.perf_counter(), time.process_time()
    heard, rest = 0, b""
    async for chunk in stack.stream(_PODS, {"watch": "true", "events": str(events)}):
        *lines, rest = (rest + chunk).split(b"\n")
        heard += sum(orjson.loads(line)["type"] == "MODIFIED" for line in lines)
    assert heard == events
    cpu, wall = time.process_time() - worked, time.perf_counter() - began
    return Sample(cpu / events, wall / events, events / wall)


POD: Json = orjson.loads(make_pod())


def report(found: Findings, effort: Effort) -> str:
    lines = [
        f"Every stack makes {effort.calls} calls, half of them creating a pod, and hears {effort.events}",
        f"events, in {effort.rounds} rounds in turns, on uvloop. CPU is the client's. The ratio",
        "is the median of the rounds.",
        "",
        "| workload | stack | CPU each | p50 | a second | CPU to aiohttp alone |",
        "|---|---|---:|---:|---:|---:|",
    ]
    return "\n".join([*lines, *(_row(found, workload, name) for workload, name in found.samples)])


def _row(found: Findings, workload: str, name: str) -> str:
    samples, bare = found.samples[workload, name], found.samples[workload, BARE]
    ratio = median(one.cpu / other.cpu for one, other in zip(samples, bare, strict=True))
    cpu, p50 = median(one.cpu for one in samples), median(one.p50 for one in samples)
    rate = median(one.rate for one in samples)
    return f"| {workload} | {name} | {cpu * 1e6:.0f} µs | {p50 * 1e6:.0f} µs | {rate:.0f} | {ratio:.2f} |"
