"""A process that somebody logged in to: a shell or a command in a session of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpudev.adapters.local.devserver.terminal import (
    TerminalRequest,
    TerminalSize,
    become_controlling_terminal,
    open_terminal,
    set_size,
)


class Login:
    """The process with our ends of its input and output. On a terminal these are all the same."""

    def __init__(self, process: subprocess.Popen[bytes], stdin: int, stdout: int, stderr: int | None) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self._process = process
        self._open = {stdin, stdout} | ({stderr} if stderr is not None else set())
        for descriptor in self._open:
            os.set_blocking(descriptor, False)
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._watch()

    async def wait(self) -> int:
        """The exit code, or the negative number of the signal that ended it."""
        return await asyncio.shield(self._ended)

    def resize(self, size: TerminalSize) -> None:
        if self._is_on_terminal:
            set_size(self.stdin, size)

    def send_signal(self, name: str) -> None:
        """To the whole process group, which the process leads."""
        number = signal.Signals.__members__.get(f"SIG{name}")
        if number is not None and not self._ended.done():
            os.killpg(self._process.pid, number)

    def close_input(self) -> None:
        """On a terminal the end of input is a character that a person types, so there it stays open."""
        if not self._is_on_terminal:
            self._close(self.stdin)

    def hang_up(self) -> None:
        """Close our ends. The kernel sends SIGHUP to what runs on a terminal; others find out later."""
        for descriptor in tuple(self._open):
            self._close(descriptor)

    @property
    def _is_on_terminal(self) -> bool:
        return self.stdin == self.stdout

    def _close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.remove(descriptor)
            os.close(descriptor)

    def _watch(self) -> None:
        """Reap the process when it ends, also if nobody is interested any more."""
        loop = asyncio.get_running_loop()
        pidfd = os.pidfd_open(self._process.pid)

        def reap() -> None:
            loop.remove_reader(pidfd)
            os.close(pidfd)
            self._ended.set_result(self._process.wait())

        loop.add_reader(pidfd, reap)


@dataclass(frozen=True, slots=True)
class Program:
    """What to run, as whom it sees itself and where."""

    path: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    directory: str


def start_on_pipes(program: Program) -> Login:
    stdin, our_stdin = os.pipe()
    our_stdout, stdout = os.pipe()
    our_stderr, stderr = os.pipe()
    try:
        process = subprocess.Popen(
            program.arguments,
            executable=program.path,
            env=program.environment,
            cwd=program.directory,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    finally:
        for descriptor in (stdin, stdout, stderr):
            os.close(descriptor)
    return Login(process, our_stdin, our_stdout, our_stderr)


def start_on_terminal(program: Program, request: TerminalRequest) -> Login:
    ours, theirs = open_terminal(request)
    try:
        process = subprocess.Popen(
            program.arguments,
            executable=program.path,
            env={**program.environment, "SSH_TTY": os.ttyname(theirs)},
            cwd=program.directory,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=become_controlling_terminal,  # noqa: PLW1509 - one ioctl, which waits for no lock
        )
    finally:
        os.close(theirs)
    return Login(process, ours, ours, None)
