"""How long a command takes: ours beside the bare interpreter and other programs, in turns.

Each round runs every program once, so that what else the machine does falls on all of them alike. The figures
that count are the ratios to `python3 -c pass` of the same rounds.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.figures import Figure, milliseconds, table
from bench.machine import running_machine
from bench.page import Section
from gpudev.adapters.local.sandbox.isolation import Isolation

TITLE = "Command line"
COMMAND = "python -m bench cli"
ROUNDS, QUICK_ROUNDS = 40, 5
BARE = "`python3 -c pass`"
LIMITS = {"`gpu-dev --help`": 6.0, "`gpu-dev list`": 9.0}
"""At most so many times as long as the bare interpreter."""
_KUBECTL_CACHE = Path.home() / ".cache" / "gpu-dev" / "kubernetes"
_HELLO = """\
import typer

app = typer.Typer()


@app.command()
def hello(name: str = "world") -> None:
    typer.echo(f"Hello, {name}!")


app()
"""

Programs = Mapping[str, Sequence[str]]


class Run(NamedTuple):
    """Seconds of one run."""

    elapsed: float
    used: float
    """Of the processor."""


def measure(quick: bool = False) -> Section:  # noqa: FBT001, FBT002 - one switch, the same for every benchmark
    with running_machine(Isolation.NONE) as machine, _typer_hello() as hello:
        programs, left_out = _list_programs(hello)
        environment = {**os.environ, "HOME": str(machine.home), "NO_COLOR": "1"}
        times = _run_in_turns(programs, environment, QUICK_ROUNDS if quick else ROUNDS)
    return Section(TITLE, COMMAND, _report(times, left_out))


def _list_programs(hello: Sequence[str] | None) -> tuple[dict[str, Sequence[str]], list[str]]:
    """Those that are there, and a word on those that are not."""
    gpu_dev = str(Path(sys.executable).with_name("gpu-dev"))
    programs: dict[str, Sequence[str]] = {
        BARE: (sys.executable, "-c", "pass"),
        "`gpu-dev --help`": (gpu_dev, "--help"),
        "`gpu-dev list`": (gpu_dev, "list"),
        "`gpu-dev avail`": (gpu_dev, "avail"),
    }
    left_out = []
    if kubectl := _find_kubectl():
        programs["`kubectl version --client`"] = (kubectl, "version", "--client")
    else:
        left_out.append("`kubectl`: it is not here")
    if hello:
        programs["hello world with typer"] = hello
    else:
        left_out.append("typer: it could not be installed into an environment of its own")
    return programs, left_out


def _find_kubectl() -> str | None:
    built = sorted(_KUBECTL_CACHE.glob("kubernetes-*/**/kubectl"))
    return str(built[-1]) if built else shutil.which("kubectl")


@contextmanager
def _typer_hello() -> Iterator[Sequence[str] | None]:
    """A script in a virtual environment that has typer and nothing else."""
    with TemporaryDirectory(prefix="gpu-dev-bench-") as folder:
        place = Path(folder)
        venv.create(place, with_pip=True)
        python = str(place / "bin" / "python")
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "typer"]
        done = subprocess.run(install, capture_output=True, check=False)
        script = place / "hello.py"
        script.write_text(_HELLO, encoding="utf-8")
        yield (python, str(script)) if done.returncode == 0 else None


def _run_in_turns(programs: Programs, environment: Mapping[str, str], rounds: int) -> dict[str, list[Run]]:
    """The first round warms the caches of the disk and is not counted; it also logs in."""
    times: dict[str, list[Run]] = {name: [] for name in programs}
    for number in range(rounds + 1):
        for name, command in programs.items():
            began, used = time.perf_counter(), _read_used()
            subprocess.run(
                command, env=environment, check=True, capture_output=True, stdin=subprocess.DEVNULL
            )
            if number:
                times[name].append(Run(time.perf_counter() - began, _read_used() - used))
    return times


def _read_used() -> float:
    """Processor time of all programs that were run so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _report(times: Mapping[str, Sequence[Run]], left_out: Sequence[str]) -> str:
    elapsed = [Figure(name, [run.elapsed for run in runs]) for name, runs in times.items()]
    used = [Figure(name, [run.used for run in runs]) for name, runs in times.items()]
    bare, bare_used = elapsed[0], used[0]
    rows = [
        f"| {wall.words} | {wall.p50 / bare.p50:.1f} | {cpu.p50 / bare_used.p50:.1f} | {_limit(wall, bare)} |"
        for wall, cpu in zip(elapsed[1:], used[1:], strict=True)
    ]
    head = "| program | time | processor | time wanted at most |\n|---|---:|---:|---|"
    missing = f"\n\nLeft out: {'; '.join(left_out)}." if left_out else ""
    return (
        f"In milliseconds, {len(times[BARE])} runs of each in turns, against a server on this machine:\n\n"
        f"{table('program', elapsed)}\n\n"
        f"In times of the bare interpreter, which took {milliseconds(bare.p50)} ms and "
        f"{milliseconds(bare_used.p50)} ms of the processor, by the medians. The time that passes counts; "
        "that of the processor tells how much of it is due to others on the machine:\n\n"
        + "\n".join([head, *rows])
        + missing
    )


def _limit(figure: Figure, bare: Figure) -> str:
    limit = LIMITS.get(figure.words)
    if limit is None:
        return ""
    return f"{limit:g}: {'kept' if figure.p50 / bare.p50 <= limit else 'MISSED'}"
