"""A process that somebody logged in to: a shell or a command in a session of its own."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence

TerminalSize = tuple[int, int, int, int]
"""Width and height in characters, then in pixels."""


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
            set_terminal_size(self.stdin, size)

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


def start_on_pipes(shell: str, arguments: Sequence[str], environment: Mapping[str, str], home: str) -> Login:
    stdin, our_stdin = os.pipe()
    our_stdout, stdout = os.pipe()
    our_stderr, stderr = os.pipe()
    try:
        process = subprocess.Popen(
            arguments,
            executable=shell,
            env=environment,
            cwd=home,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    finally:
        for descriptor in (stdin, stdout, stderr):
            os.close(descriptor)
    return Login(process, our_stdin, our_stdout, our_stderr)


def start_on_terminal(
    shell: str, arguments: Sequence[str], environment: Mapping[str, str], home: str, size: TerminalSize
) -> Login:
    master, slave = os.openpty()
    set_terminal_size(master, size)
    try:
        process = subprocess.Popen(
            arguments,
            executable=shell,
            env={**environment, "SSH_TTY": os.ttyname(slave)},
            cwd=home,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509 - one ioctl, nothing that could wait for a lock
        )
    finally:
        os.close(slave)
    return Login(process, master, master, None)


def set_terminal_size(terminal: int, size: TerminalSize) -> None:
    width, height, pixel_width, pixel_height = size
    packed = struct.pack("HHHH", height, width, pixel_width, pixel_height)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, packed)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
