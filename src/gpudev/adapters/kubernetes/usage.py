"""How much a dev server is used, from what `startup/usage.sh` says in it.

CPU use is what came to it between two looks, so the first look does not know it. What is not said, or
not said as it should be, is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from gpudev.domain.idle import Signal, Usage

_NANOSECONDS = 1e9
_GPU_SIGNALS = frozenset({Signal.GPU_USE, Signal.GPU_MEMORY})


@dataclass(frozen=True, slots=True)
class CpuTime:
    """What a container had used of the CPU at a moment of its machine's clock, in seconds."""

    at: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Look:
    """What was found out on one member."""

    connections: int | None = None
    cpu: CpuTime | None = None
    gpus: tuple[tuple[float, float], ...] = ()
    """Percent of each GPU and of its memory, for those that say so."""
    oom_kills: int = 0
    """How often something was ended for want of memory since the container started."""


@dataclass(frozen=True, slots=True)
class Gpus:
    """What the member has."""

    count: int
    is_simulated: bool = False


def read_look(text: str) -> Look:
    lines = [line.split() for line in text.splitlines()]
    connections = next((int(count) for count in _values(lines, "ssh", 1)), None)
    times = [line[1:] for line in lines if line[:1] == ["cpu"] and _are_numbers(line[1:], 2)]
    cpu = next((CpuTime(float(at), float(used) / _NANOSECONDS) for at, used in times), None)
    figures = [line[1:] for line in lines if line[:1] == ["gpu"] and _are_numbers(line[1:], 3)]
    gpus = [tuple(map(float, three)) for three in figures]
    shares = tuple((use, 100 * taken / all_of_it) for use, taken, all_of_it in gpus)
    return Look(connections, cpu, shares, next((int(count) for count in _values(lines, "oom", 1)), 0))


def tell_usage(look: Look, before: CpuTime | None, gpus: Gpus, now: datetime) -> Usage:
    signals: dict[Signal, float] = {}
    if look.connections is not None:
        signals[Signal.SSH] = float(look.connections)
    if look.cpu is not None and before is not None and look.cpu.at > before.at:
        # A container that was started again begins to count anew.
        signals[Signal.CPU] = max(0.0, look.cpu.seconds - before.seconds) / (look.cpu.at - before.at)
    absent = frozenset({Signal.JUPYTER}) | (frozenset() if gpus.count else _GPU_SIGNALS)
    return Usage(now, signals | _gpu_signals(look, gpus), absent, gpus.is_simulated)


def _gpu_signals(look: Look, gpus: Gpus) -> dict[Signal, float]:
    """The busiest speaks for all; one that does not answer leaves all unknown. Simulated ones do nothing."""
    if gpus.count and gpus.is_simulated:
        return dict.fromkeys(_GPU_SIGNALS, 0.0)
    if not gpus.count or len(look.gpus) != gpus.count:
        return {}
    return {
        Signal.GPU_USE: max(use for use, _ in look.gpus),
        Signal.GPU_MEMORY: max(memory for _, memory in look.gpus),
    }


def _values(lines: Iterable[list[str]], name: str, count: int) -> Iterable[str]:
    return (line[1] for line in lines if line[:1] == [name] and _are_numbers(line[1:], count))


def _are_numbers(words: list[str], count: int) -> bool:
    return len(words) == count and all(word.replace(".", "", 1).isdecimal() for word in words)
