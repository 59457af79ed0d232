"""How much a dev server on this machine is used: its GPUs, its connections and its processes.

Real GPUs are asked through NVML. A simulated one has no use of its own, so its figures are what somebody
declares in a file beside the server's record, `usage.json`, as `{"gpu_use": 80, "gpu_memory": 40}`; without
the file they are 0.

Connections and processes are read for the whole machine, and shared by all servers that are measured within a
moment: what one of them does with them must not make it expensive to measure the others.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Generic, TypeVar
from weakref import WeakSet

from gpudev.adapters.local.gpus import LocalGpu, find_use
from gpudev.adapters.local.processes.identity import find_status, list_marked
from gpudev.adapters.local.record import Record
from gpudev.domain.idle import Signal, Usage

_STATE = 3
_OPEN = b"01"
_PORT = re.compile(rb"[0-9A-F]{4}")
_DECLARED = (Signal.GPU_USE, Signal.GPU_MEMORY)
_WHOLE = 100
_TICKS = os.sysconf("SC_CLK_TCK")
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_SHARED_SECONDS = 0.2
T = TypeVar("T")


class Shared(Generic[T]):
    """A reading of the whole machine; all who ask within a moment share it, each once."""

    def __init__(self, read: Callable[[], T], seconds: float = _SHARED_SECONDS) -> None:
        self._read = read
        self._seconds = seconds
        self._lock = threading.Lock()
        self._last: tuple[float, T] | None = None
        self._given: WeakSet[object] = WeakSet()

    def get(self, asker: object) -> T:
        with self._lock:
            last = self._last
            if last is None or asker in self._given or time.monotonic() >= last[0] + self._seconds:
                value = self._read()
                self._last = last = time.monotonic(), value
                self._given = WeakSet()
            self._given.add(asker)
            return last[1]


@dataclass(frozen=True, slots=True)
class CpuTime:
    """What all processes of a server had used of the CPU at a moment."""

    at: float
    seconds: float


class UsageMeter:
    """Of one server. CPU use is what came to it between two looks, so the first look does not know it."""

    def __init__(self, directory: Path) -> None:
        self._declared = directory / "usage.json"
        self._last: CpuTime | None = None

    def measure(self, record: Record, now: datetime) -> Usage:
        signals: dict[Signal, float] = {Signal.SSH: float(_CONNECTIONS.get(self)[record.port])}
        absent = {Signal.JUPYTER}
        if record.gpus:
            signals |= self._measure_gpus(record.gpus)
        else:
            absent |= {Signal.GPU_USE, Signal.GPU_MEMORY}
        cpu = self._measure_cpu(record)
        if cpu is not None:
            signals[Signal.CPU] = cpu
        is_simulated = any(gpu.is_simulated for gpu in record.gpus)
        return Usage(now, signals, frozenset(absent), is_simulated)

    def _measure_gpus(self, gpus: tuple[LocalGpu, ...]) -> dict[Signal, float]:
        """The busiest of them speaks for all; one that does not answer leaves all unknown."""
        if any(gpu.is_simulated for gpu in gpus):
            return self._read_declared()
        found = [find_use(gpu.visible_name) for gpu in gpus]
        known = [use for use in found if use is not None]
        if len(known) < len(found):
            return {}
        return {
            Signal.GPU_USE: max(use.percent for use in known),
            Signal.GPU_MEMORY: max(use.memory_percent for use in known),
        }

    def _read_declared(self) -> dict[Signal, float]:
        try:
            return read_declared(self._declared.read_bytes())
        except FileNotFoundError:
            return {Signal.GPU_USE: 0.0, Signal.GPU_MEMORY: 0.0}

    def _measure_cpu(self, record: Record) -> float | None:
        last = self._last
        self._last = CpuTime(time.monotonic(), _sum_cpu_seconds(_PROCESSES.get(self).get(record.name, ())))
        if last is None or self._last.at <= last.at:
            return None
        # Processes that ended in between have taken their time with them.
        return max(0.0, self._last.seconds - last.seconds) / (self._last.at - last.at)


def read_declared(content: bytes) -> dict[Signal, float]:
    """What is declared; nothing if that is not two numbers of a share."""
    try:
        said = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    values = [said.get(signal, 0) if isinstance(said, dict) else None for signal in _DECLARED]
    if not all(isinstance(value, int | float) and 0 <= value <= _WHOLE for value in values):
        return {}
    return {signal: float(said.get(signal, 0)) for signal in _DECLARED}


def count_connections() -> Counter[int]:
    """Established TCP connections, by the port of this machine."""
    return sum((count_in_table(table.read_bytes()) for table in _TABLES if table.exists()), Counter[int]())


def count_in_table(table: bytes) -> Counter[int]:
    rows = (line.split(maxsplit=_STATE + 1) for line in table.splitlines()[1:])
    ports = (row[1].rpartition(b":")[2] for row in rows if len(row) > _STATE and row[_STATE] == _OPEN)
    return Counter(int(port, 16) for port in ports if _PORT.fullmatch(port))


_CONNECTIONS: Shared[Counter[int]] = Shared(count_connections)
_PROCESSES: Shared[Mapping[str, frozenset[int]]] = Shared(list_marked)


def _sum_cpu_seconds(pids: Iterable[int]) -> float:
    return sum(map(_cpu_seconds, pids))


def _cpu_seconds(pid: int) -> float:
    found = find_status(pid)
    return found.cpu_ticks / _TICKS if found else 0.0
