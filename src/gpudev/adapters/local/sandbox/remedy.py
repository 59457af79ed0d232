"""What would help where no sandbox can be made.

Newer Ubuntu lets only programs with an AppArmor profile create user namespaces. Its own bubblewrap may have
one; ours gets one from here, for its path.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from gpudev.adapters.local.sandbox.bubblewrap import find_bundled
from gpudev.texts.fact import Fact, fact
from gpudev.texts.sentences import say

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
