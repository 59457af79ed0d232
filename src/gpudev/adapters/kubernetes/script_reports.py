"""What our scripts inside a dev server print: use (`usage.sh`), command (`job.sh`), files (`listing.sh`).

Pure and total: the text comes from a container whose user may write anything there. What is missing or
malformed is unknown. CPU use is the difference between two reports, so the first report does not have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from gpudev.domain.idle import Signal, Usage
from gpudev.domain.job import Job, read_job
from gpudev.domain.names import make_printable
from gpudev.domain.volume import FileListing
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say

_NANOSECONDS = 1e9
_WHOLE = 100.0
_MOST_CORES = 100_000.0
_MOST_COUNTED = 1_000_000
"""More than any machine has: a larger figure is no measurement, and would not fit where it is kept."""
_NUMBER = re.compile(r"[0-9]{1,19}(\.[0-9]{1,19})?")
"""With so few digits that it is neither infinite nor slow to read."""
_GPU_SIGNALS = frozenset({Signal.GPU_USE, Signal.GPU_MEMORY})
_TOTAL = re.compile(r"total ([0-9]{1,18}) ([0-9]{1,18})")
_FILE = re.compile(r"[^ ]* ([0-9]{1,18}) ([^ ]*) ([^ ]*) (.*)", re.DOTALL)
"""Blocks, bytes, day, minute and path."""
_LONGEST_LINE = 1000


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
    """Total: the text comes from a container whose user may write anything there."""
    lines = [line.split() for line in text.splitlines()]
    connections = next(_counts(lines, "ssh"), None)
    cpu = next((CpuTime(at, used / _NANOSECONDS) for at, used in _figures(lines, "cpu", 2)), None)
    gpus = tuple(
        (use, _WHOLE * taken / memory)
        for use, taken, memory in _figures(lines, "gpu", 3)
        if use <= _WHOLE and taken <= memory and memory > 0
    )
    return Look(connections, cpu, gpus, next(_counts(lines, "oom"), 0))


def tell_usage(look: Look, before: CpuTime | None, gpus: Gpus, now: datetime) -> Usage:
    signals: dict[Signal, float] = {}
    if look.connections is not None:
        signals[Signal.SSH] = float(look.connections)
    if look.cpu is not None and before is not None and look.cpu.at > before.at:
        # A container that was started again begins to count anew.
        cores = max(0.0, look.cpu.seconds - before.seconds) / (look.cpu.at - before.at)
        signals[Signal.CPU] = min(cores, _MOST_CORES)
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


def _counts(lines: Iterable[list[str]], name: str) -> Iterator[int]:
    counts = (count for [count] in _figures(lines, name, 1) if count <= _MOST_COUNTED)
    return (int(count) for count in counts if count.is_integer())


def _figures(lines: Iterable[list[str]], name: str, count: int) -> Iterator[tuple[float, ...]]:
    """The numbers of each line of this name that has so many."""
    for line in lines:
        if line[:1] == [name] and len(line) == count + 1 and all(map(_NUMBER.fullmatch, line[1:])):
            yield tuple(map(float, line[1:]))


def read_job_report(said: str) -> Job | None:
    """None where no command was started."""
    head, is_there, output = f"\n{said}".partition("\noutput\n")
    if not is_there:
        return None
    pairs = [line.partition(" ") for line in head.splitlines()]
    values = {name: value.encode(errors="replace") for name, _, value in pairs}
    return read_job(
        values.get("code"),
        values.get("why"),
        output.encode(errors="replace"),
        is_fetched="fetched" in values,
    )


def read_listing(said: str) -> FileListing | None:
    """None if it was cut off before its end."""
    *files, last = said.splitlines() or [""]
    total = _TOTAL.fullmatch(last.strip())
    if total is None:
        return None
    count, used = int(total[1]), int(total[2])
    lines = [make_printable(_describe(line), _LONGEST_LINE) for line in files]
    if count > len(lines):
        lines.append(say(fact("listing_cut", count=count - len(lines))))
    return FileListing("\n".join(lines), used)


def _describe(line: str) -> str:
    """A name may have a line break in it: the rest of it stands on a line of its own."""
    found = _FILE.fullmatch(line)
    return f"{int(found[1]):>14,}  {found[2]} {found[3]}  {found[4]}" if found else line
