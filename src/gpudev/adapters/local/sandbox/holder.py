"""A sandbox in being: bubblewrap makes it, a tiny program inside holds it, and other processes enter.

The holder reads a pipe whose other end the SSH server will have alone. When the SSH server ends, however
it ends, the holder reads the end of its input and ends too, and with it the sandbox's init and every
process in the sandbox. Nothing can be left behind without a server to reach it by.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gpudev.adapters.local.processes import linux
from gpudev.adapters.local.sandbox.isolation import list_programs
from gpudev.adapters.local.sandbox.sandbox import HOME, Sandbox, bubblewrap_arguments, sandbox_files
from gpudev.domain.errors import ClusterUnavailable

_SECONDS_TO_START = 15
_HOLDER = ("/bin/cat",)
_HELLO = b"\n"
_MAX_WORDS = 2000


class SandboxFailed(ClusterUnavailable):
    """bubblewrap did not make the sandbox."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A running holder."""

    monitor: subprocess.Popen[bytes]
    """bubblewrap itself, outside; a child of ours to be reaped."""
    init_pid: int
    """The first process of the sandbox, as seen from outside: killing it ends everything inside."""
    lifeline: int
    """The end of the pipe that keeps the holder running."""


class Namespaces:
    """The namespaces of a sandbox, opened so that they can be entered.

    Where bubblewrap runs without root it nests two user namespaces: the outer one owns the mounts and
    the process tree, and the inner one has the sandbox's user. The outer one gives the right to enter the
    others, so it comes first, and the inner one last.
    """

    def __init__(self, pid: int) -> None:
        self._descriptors = {
            kind: _open_namespace(pid, kind) for kind in ("mnt", "pid", "ipc", "uts", "user")
        }
        self._owner = linux.open_owner_namespace(self._descriptors["mnt"])

    def enter_for_children(self) -> None:
        """From now on children are born into the sandbox's process tree."""
        if not _is_ours(self._owner):
            linux.enter_namespace(self._owner, linux.CLONE_NEWUSER)
        linux.enter_namespace(self._descriptors["pid"], linux.CLONE_NEWPID)

    def enter(self) -> None:
        """Everything else; for a child born after `enter_for_children`."""
        linux.enter_namespace(self._descriptors["ipc"], linux.CLONE_NEWIPC)
        linux.enter_namespace(self._descriptors["uts"], linux.CLONE_NEWUTS)
        linux.enter_namespace(self._descriptors["mnt"], linux.CLONE_NEWNS)
        user = self._descriptors["user"]
        # Its /proc is the sandbox's now, where this process shows under its new number as well.
        if not _is_ours(user):
            linux.enter_namespace(user, linux.CLONE_NEWUSER)

    def close(self) -> None:
        for descriptor in (self._owner, *self._descriptors.values()):
            os.close(descriptor)


def start_holder(sandbox: Sandbox, program: str = "") -> Holder:
    """Make the sandbox and return when it stands, which the holder shows by echoing one byte.

    `program` is the path of bubblewrap; empty: the first that is installed.
    """
    if not (program := program or next(iter(list_programs()), "")):
        raise SandboxFailed("bubblewrap_missing")
    input_, lifeline = os.pipe()
    echo, output = os.pipe()
    os.write(lifeline, _HELLO)
    with _memory_file() as words:
        monitor, info = _start_bubblewrap(program, sandbox, _Streams(input_, output, words))
        os.close(input_)
        os.close(output)
        described = _read_to_end(info)
        if not _echoes(echo):
            raise _failure(words)
    os.close(echo)
    return Holder(monitor, json.loads(described)["child-pid"], lifeline)


class _Streams(NamedTuple):
    input: int
    output: int
    words: int


def _start_bubblewrap(
    program: str, sandbox: Sandbox, streams: _Streams
) -> tuple[subprocess.Popen[bytes], int]:
    """Its process, and the pipe on which it describes what it made."""
    info, their_info = os.pipe()
    with _in_memory(sandbox_files(sandbox)) as data:
        arguments = "\0".join([*bubblewrap_arguments(sandbox, data), ""])
        with _memory_file(arguments) as listed:
            monitor = subprocess.Popen(
                [program, "--info-fd", str(their_info), "--args", str(listed), "--", *_HOLDER],
                stdin=streams.input,
                stdout=streams.output,
                stderr=streams.words,
                pass_fds=(their_info, listed, *data.values()),
            )
    os.close(their_info)
    return monitor, info


def _failure(words: int) -> SandboxFailed:
    """In bubblewrap's own words, if it has any."""
    os.lseek(words, 0, os.SEEK_SET)
    text = os.read(words, _MAX_WORDS).decode(errors="replace").strip()
    if text:
        return SandboxFailed("words", words=text)
    return SandboxFailed("sandbox_timeout", seconds=_SECONDS_TO_START)


def enter_sandbox(namespaces: Namespaces, sandbox: Sandbox) -> None:
    """Become the sandbox's user inside the sandbox, for good."""
    namespaces.enter()
    namespaces.close()
    linux.give_up_privileges(sandbox.user_id if sandbox.is_made_by_root else None)
    os.chdir(HOME)


def _open_namespace(pid: int, kind: str) -> int:
    return os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)


def _is_ours(user_namespace: int) -> bool:
    theirs, ours = os.fstat(user_namespace), Path("/proc/self/ns/user").stat()
    return (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino)


@contextlib.contextmanager
def _in_memory(files: Mapping[str, str]) -> Iterator[dict[str, int]]:
    with contextlib.ExitStack() as stack:
        yield {path: stack.enter_context(_memory_file(text)) for path, text in files.items()}


@contextlib.contextmanager
def _memory_file(text: str = "") -> Iterator[int]:
    """A file without a name, so that nothing of it shows in `ps` or on a disk."""
    descriptor = os.memfd_create("gpu-dev")
    try:
        os.write(descriptor, text.encode())
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _read_to_end(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read()


def _echoes(descriptor: int) -> bool:
    ready, _, _ = select.select([descriptor], [], [], _SECONDS_TO_START)
    return bool(ready) and os.read(descriptor, 1) == _HELLO
