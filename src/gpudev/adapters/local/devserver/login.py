"""The process of a login, a shell or a command in a session of its own, and the terminal that it runs on.

A terminal is set up as the client's own: its size, and the modes of RFC 4254. The client sends the modes
that its terminal has, so that erase, interrupt and the rest are on the same keys there and here.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_INPUT, _OUTPUT, _CONTROL, _LOCAL, _CHARACTERS = 0, 1, 2, 3, 6
_IUTF8 = 0o40000
_DISABLED_CHARACTER = 255

_CHARACTER_MODES = {
    1: termios.VINTR,
    2: termios.VQUIT,
    3: termios.VERASE,
    4: termios.VKILL,
    5: termios.VEOF,
    6: termios.VEOL,
    7: termios.VEOL2,
    8: termios.VSTART,
    9: termios.VSTOP,
    10: termios.VSUSP,
    12: termios.VREPRINT,
    13: termios.VWERASE,
    14: termios.VLNEXT,
    18: termios.VDISCARD,
}
_FLAG_MODES = {
    30: (_INPUT, termios.IGNPAR),
    31: (_INPUT, termios.PARMRK),
    32: (_INPUT, termios.INPCK),
    33: (_INPUT, termios.ISTRIP),
    34: (_INPUT, termios.INLCR),
    35: (_INPUT, termios.IGNCR),
    36: (_INPUT, termios.ICRNL),
    38: (_INPUT, termios.IXON),
    39: (_INPUT, termios.IXANY),
    40: (_INPUT, termios.IXOFF),
    41: (_INPUT, termios.IMAXBEL),
    42: (_INPUT, _IUTF8),
    50: (_LOCAL, termios.ISIG),
    51: (_LOCAL, termios.ICANON),
    53: (_LOCAL, termios.ECHO),
    54: (_LOCAL, termios.ECHOE),
    55: (_LOCAL, termios.ECHOK),
    56: (_LOCAL, termios.ECHONL),
    57: (_LOCAL, termios.NOFLSH),
    58: (_LOCAL, termios.TOSTOP),
    59: (_LOCAL, termios.IEXTEN),
    60: (_LOCAL, termios.ECHOCTL),
    61: (_LOCAL, termios.ECHOKE),
    70: (_OUTPUT, termios.OPOST),
    72: (_OUTPUT, termios.ONLCR),
    73: (_OUTPUT, termios.OCRNL),
    74: (_OUTPUT, termios.ONOCR),
    75: (_OUTPUT, termios.ONLRET),
    90: (_CONTROL, termios.CS7),
    91: (_CONTROL, termios.CS8),
    92: (_CONTROL, termios.PARENB),
    93: (_CONTROL, termios.PARODD),
}

TerminalSize = tuple[int, int, int, int]
"""Width and height in characters, then in pixels."""


@dataclass(frozen=True, slots=True)
class TerminalRequest:
    """What a client asks of a terminal: its size and its modes by RFC 4254's numbers."""

    size: TerminalSize
    modes: Mapping[int, int]


def open_terminal(request: TerminalRequest) -> tuple[int, int]:
    """Our end and the session's end of a new terminal."""
    ours, theirs = os.openpty()
    set_size(ours, request.size)
    _set_modes(theirs, request.modes)
    return ours, theirs


def set_size(terminal: int, size: TerminalSize) -> None:
    width, height, pixel_width, pixel_height = size
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, pixel_width, pixel_height))


def become_controlling_terminal() -> None:
    """In a new process that leads a session: make its input the terminal of that session."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _set_modes(terminal: int, modes: Mapping[int, int]) -> None:
    attributes = termios.tcgetattr(terminal)
    for mode, value in modes.items():
        if mode in _CHARACTER_MODES:
            character = b"\0" if value == _DISABLED_CHARACTER else bytes([value & 0xFF])
            attributes[_CHARACTERS][_CHARACTER_MODES[mode]] = character
        elif mode in _FLAG_MODES:
            group, flag = _FLAG_MODES[mode]
            attributes[group] = attributes[group] | flag if value else attributes[group] & ~flag
    termios.tcsetattr(terminal, termios.TCSANOW, attributes)


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
