"""System calls of Linux that Python does not offer (namespaces, capabilities, `prctl`), and priorities.

Each of the former is one call with its error raised as `OSError`; what the calls are for is said where they
are used.

The control plane has priority over dev servers. Only root may raise a priority, so a dev server cannot raise
its own. Kernels with `autogroup` divide the cores between sessions first and look at `nice` only within one,
so both are set.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import struct
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000

_NS_GET_USERNS = 0xB701
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
_PR_CAPBSET_READ = 23
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION_3 = 0x20080522
_CAPABILITY_SETS_SIZE = 24
_HIGHEST_CAPABILITY = 63

_libc = ctypes.CDLL(None, use_errno=True)
_RAISED = -10
_USUAL = 0


def enter_namespace(descriptor: int, kind: int) -> None:
    """Move this process into a namespace; a pid namespace only takes in the children born after."""
    _check(_libc.setns(descriptor, kind), "setns")


def open_owner_namespace(descriptor: int) -> int:
    """A descriptor of the user namespace that owns the given namespace."""
    return fcntl.ioctl(descriptor, _NS_GET_USERNS)


def sync_file_system(descriptor: int) -> None:
    """Write everything of the file system that the descriptor is on to its disk."""
    _check(_libc.syncfs(descriptor), "syncfs")


def become_subreaper() -> None:
    """Orphaned descendants become children of this process instead of the machine's init."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(signal_number: int) -> None:
    _prctl(_PR_SET_PDEATHSIG, signal_number)


def name_this_process(name: str) -> None:
    """Set the name in `ps` and `top`; the kernel keeps 15 bytes of it."""
    _prctl(_PR_SET_NAME, ctypes.c_char_p(name.encode()))


def hide_from_debuggers() -> None:
    """Keep processes of the same user from reading this one's memory, where the host key is."""
    _prctl(_PR_SET_DUMPABLE, 0)


def give_up_privileges(user_id: int | None = None) -> None:
    """Become the given user, if any, and drop all capabilities for good: no set-uid program helps."""
    for capability in range(_HIGHEST_CAPABILITY + 1):
        if _libc.prctl(_PR_CAPBSET_READ, capability, 0, 0, 0) == 1:
            _prctl(_PR_CAPBSET_DROP, capability)
    if user_id is not None:
        _take_on_user(user_id)
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(header, bytes(_CAPABILITY_SETS_SIZE)), "capset")
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def _take_on_user(user_id: int) -> None:
    """Another user with its own group of the same number and no others. Only root can."""
    os.setgroups([])
    os.setresgid(user_id, user_id, user_id)
    os.setresuid(user_id, user_id, user_id)


def _prctl(option: int, argument: object) -> None:
    _check(_libc.prctl(option, argument, 0, 0, 0), "prctl")


def _check(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")


def raise_priority(pid: int) -> None:
    """Of a program that we have just started in a session of its own.

    Not where somebody has chosen another priority for all of us.
    """
    if os.getpriority(os.PRIO_PROCESS, 0) not in {_USUAL, _RAISED}:
        return
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, _RAISED)
        Path(f"/proc/{pid}/autogroup").write_text(str(_RAISED), encoding="ascii")


def drop_priority() -> None:
    """Of this process, which is about to start what belongs to a user."""
    if os.getpriority(os.PRIO_PROCESS, 0) < _USUAL:
        os.setpriority(os.PRIO_PROCESS, 0, _USUAL)
