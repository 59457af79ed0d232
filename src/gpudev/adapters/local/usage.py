"""How much a dev server on this machine is used: its GPUs, its connections and its processes.

Real GPUs are asked through NVML. A simulated one has no use of its own, so its figures are what somebody
declares in a file beside the server's record, `usage.json`, as `{"gpu_use": 80, "gpu_memory": 40}`; without
the file they are 0.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gpudev.adapters.local.nodes.gpu import LocalGpu
from gpudev.adapters.local.nodes.nvml import find_use
from gpudev.adapters.local.processes.descendants import find_strays
from gpudev.adapters.local.processes.identity import find_status
from gpudev.adapters.local.record import Record
from gpudev.domain.idle import Signal, Usage

_STATE = 3
_OPEN = b"01"
_DECLARED = (Signal.GPU_USE, Signal.GPU_MEMORY)
_WHOLE = 100
_TICKS = os.sysconf("SC_CLK_TCK")
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


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
        signals: dict[Signal, float] = {Signal.SSH: float(count_connections(record.port))}
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
        self._last = CpuTime(time.monotonic(), _sum_cpu_seconds(find_strays(record.name)))
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


def count_connections(port: int) -> int:
    """Established TCP connections to a port of this machine."""
    return sum(count_in_table(table.read_bytes(), port) for table in _TABLES if table.exists())


def count_in_table(table: bytes, port: int) -> int:
    rows = (line.split() for line in table.splitlines()[1:])
    ending = f":{port:04X}".encode()
    return sum(1 for row in rows if len(row) > _STATE and row[1].endswith(ending) and row[_STATE] == _OPEN)


def _sum_cpu_seconds(pids: set[int]) -> float:
    return sum(map(_cpu_seconds, pids))


def _cpu_seconds(pid: int) -> float:
    found = find_status(pid)
    return found.cpu_ticks / _TICKS if found else 0.0
