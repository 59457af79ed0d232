"""A person at a terminal: a program under a pseudo-terminal, what its screen shows, and keys to press."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyte

DEADLINE_SECONDS = 60.0

UP, DOWN, ENTER, SPACE, INTERRUPT = "\x1b[A", "\x1b[B", "\r", " ", "\x03"

LAST_WORD_OF_A_MENU = "leave."

_CHANGING = (
    (re.compile(r"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?\d\d:\d\d\b"), "HH:MM"),
    (re.compile(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]"), "*"),
    (re.compile(r"\b\d+ s\b"), "N s"),
    (re.compile(r"[━─]{10}"), "[BAR]"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    # The path of the home is folded wherever the window ends.
    (re.compile(r"or with:.*", re.DOTALL), "or with: ..."),
)


@dataclass(frozen=True)
class Seen:
    text: str
    code: int


class Terminal:
    """A program and the window that it runs in."""

    def __init__(self, pid: int, terminal: int, columns: int, rows: int) -> None:
        self._pid = pid
        self._terminal = terminal
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.Stream(self._screen)
        # A piece may end within a character.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.written = ""
        """Everything, escape sequences and all."""

    def wait_for(self, *texts: str) -> None:
        """Until the screen shows all of this at once. What is written at once may arrive in pieces."""
        self._wait_until(lambda: all(text in self._show() for text in texts), f"{texts} to be shown")

    def wait_for_menu(self, text: str) -> None:
        """Until a menu shows this, and all its lines are there."""
        self._wait_until(
            lambda: text in (shown := self._show()) and shown.endswith(LAST_WORD_OF_A_MENU),
            f'a menu with "{text}"',
        )

    def wait_until_gone(self, text: str) -> None:
        self._wait_until(lambda: text not in self._show(), f'"{text}" to go')

    def wait_for_question(self, question: str, prompt: str) -> None:
        """Until the question is shown and the cursor waits behind the prompt."""
        self.wait_for(question)
        self._wait_until(lambda: self._show().endswith(prompt), f'"{prompt}"')

    def press(self, *keys: str) -> None:
        for key in keys:
            os.write(self._terminal, key.encode())

    def resize(self, columns: int, rows: int) -> None:
        set_size(self._terminal, columns, rows)
        self._screen.resize(rows, columns)

    def picture(self) -> str:
        """The screen as text; what differs from run to run is replaced."""
        text = self._show()
        for pattern, word in _CHANGING:
            text = pattern.sub(word, text)
        return text

    def wait_for_end(self) -> int:
        """Read until the program has ended; its exit code."""
        end = time.monotonic() + DEADLINE_SECONDS
        while self._read(end):
            pass
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        return os.waitstatus_to_exitcode(status)

    def close(self) -> None:
        os.close(self._terminal)
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)

    def _show(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    def _wait_until(self, condition: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + DEADLINE_SECONDS
        while not condition():
            assert self._read(end), f"It ended, or took too long, waiting for {what}:\n{self._show()}"

    def _read(self, end: float) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], max(0.0, end - time.monotonic()))
        piece = _read(self._terminal) if ready else b""
        text = self._decoder.decode(piece)
        self.written += text
        self._stream.feed(text)
        return bool(piece)


@contextlib.contextmanager
def open_terminal(
    command: Sequence[str], environ: Mapping[str, str], columns: int = 80, rows: int = 24
) -> Iterator[Terminal]:
    # The program must find its window as big as it is; these would say otherwise.
    kept = {name: value for name, value in environ.items() if name not in {"COLUMNS", "LINES"}}
    pid, terminal = pty.fork()
    if pid == 0:
        set_size(0, columns, rows)
        os.execvpe(command[0], list(command), kept)  # noqa: S606 - no shell is wanted
    opened = Terminal(pid, terminal, columns, rows)
    try:
        yield opened
    finally:
        opened.close()


def set_size(terminal: int, columns: int, rows: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def run_on_terminal(
    command: Sequence[str], environ: Mapping[str, str], answers: Sequence[tuple[str, str]] = ()
) -> Seen:
    """Run to the end. Each answer is typed once the text before it is shown."""
    with open_terminal(command, environ, columns=120, rows=50) as terminal:
        for text, answer in answers:
            terminal.wait_for(text)
            terminal.press(answer)
        code = terminal.wait_for_end()
        return Seen(terminal.written, code)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the other end is closed
        return b""
