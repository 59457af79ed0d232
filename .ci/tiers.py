#!/usr/bin/env python3
"""The tiers of CI: each is run, measured, and leaves no process behind; at the end, what all of them took.

    tiers.py run REPORT TIER COMMAND ...
    tiers.py tell REPORT SECONDS_OF_ALL

Nothing but the standard library: it runs before anything is installed.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import time
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

BUDGETS = Path(__file__).with_name("budgets.toml")
_SET_CHILD_SUBREAPER = 36
_COMPILES = "kubernetes"
_COMPILED_SECONDS = 60
"""A build that took longer had something to compile: the caches were cold."""


@dataclass(frozen=True, slots=True)
class Measured:
    tier: str
    seconds: float
    cpu: float
    code: int


def run(report: Path, tier: str, command: Sequence[str]) -> int:
    # Whatever its parent leaves behind becomes our child: so its CPU is counted, and it can be ended.
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end_at_once)
    started = time.monotonic()
    # Not `subprocess`: an object of it that is dropped takes the exit code of a command that ended at once.
    defaults = (signal.SIGPIPE, signal.SIGXFSZ)
    code = _wait_for(os.posix_spawnp(command[0], command, os.environ, setsigdef=defaults))
    left = end_descendants()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    measured = Measured(tier, time.monotonic() - started, used.ru_utime + used.ru_stime, code)
    with report.open("a") as file:
        file.write(json.dumps(asdict(measured)) + "\n")
    also = f", {left} processes were left and ended" if left else ""
    say(f"[{tier}] {measured.seconds:.0f} s, {measured.cpu:.0f} s of CPU, exit code {code}{also}")
    return code if code >= 0 else 128 - code


def _wait_for(command: int) -> int:
    """Its exit code. What ended without a parent meanwhile is taken note of as it ends."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == command:
            return os.waitstatus_to_exitcode(status)


def _end_at_once(number: int, _frame: FrameType | None) -> None:
    end_descendants()
    sys.exit(128 + number)


def end_descendants() -> int:
    """Kill them all, and wait for them; how many there were."""
    ended = 0
    while True:
        for pid in list_descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return ended
        ended += 1


def list_descendants(ancestor: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parent = int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1])
            except OSError:  # it has ended meanwhile
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found = list(children.get(ancestor, ()))
    for pid in found:
        found += children.get(pid, ())
    return found


def tell(report: Path, seconds: float) -> None:
    budgets = tomllib.loads(BUDGETS.read_text())
    lines = report.read_text().splitlines() if report.exists() else []
    all_measured = [Measured(**json.loads(line)) for line in lines]
    say(f"{'tier':14}{'seconds':>9}{'budget':>9}{'CPU':>9}{'budget':>9}")
    for one in all_measured:
        say(format_tier(one, budgets["tiers"].get(one.tier, {})))
    say(format_total(seconds, all_measured, budgets["total"]))


def format_tier(one: Measured, budget: dict[str, float]) -> str:
    marks = [f"FAILED ({one.code})"] if one.code else []
    marks += [] if budget else ["NO BUDGET"]
    over = [name for name in budget if getattr(one, name) > budget[name]]
    marks += [f"OVER BUDGET ({', '.join(over)})"] if over else []
    seconds, cpu = (f"{budget[name]:.0f}" if budget else "-" for name in ("seconds", "cpu"))
    return f"{one.tier:14}{one.seconds:9.0f}{seconds:>9}{one.cpu:9.0f}{cpu:>9}  {' '.join(marks)}".rstrip()


def format_total(seconds: float, all_measured: Sequence[Measured], budget: dict[str, Any]) -> str:
    cold = any(one.tier == _COMPILES and one.seconds > _COMPILED_SECONDS for one in all_measured)
    most = budget["seconds"] if cold else budget["warm_seconds"]
    mark = "OVER BUDGET (seconds)" if seconds > most else ""
    cpu = sum(one.cpu for one in all_measured)
    caches = "cold" if cold else "warm"
    return f"{'all':14}{seconds:9.0f}{most:9.0f}{cpu:9.0f}{'-':>9}  {caches} caches {mark}".rstrip()


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    match arguments:
        case ["run", report, tier, *command] if command:
            return run(Path(report), tier, command)
        case ["tell", report, seconds]:
            tell(Path(report), float(seconds))
            return 0
        case _:
            sys.stderr.write(__doc__ or "")
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
