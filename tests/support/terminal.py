"""A person at a terminal: a program under a pseudo-terminal, what it shows, and answers to its questions."""

from __future__ import annotations

import os
import pty
import select
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DEADLINE_SECONDS = 60.0


@dataclass(frozen=True)
class Seen:
    text: str
    code: int


def run_on_terminal(
    command: Sequence[str], environ: Mapping[str, str], answers: Sequence[tuple[str, str]] = ()
) -> Seen:
    """Run to the end. Each answer is typed once the text before it has appeared."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(command[0], list(command), dict(environ))  # noqa: S606 - no shell is wanted
    try:
        text = _converse(terminal, list(answers))
    finally:
        os.close(terminal)
        _, status = os.waitpid(pid, 0)
    return Seen(text, os.waitstatus_to_exitcode(status))


def _converse(terminal: int, answers: list[tuple[str, str]]) -> str:
    text, read_to = "", 0
    end = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < end:
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        piece = _read(terminal) if ready else b""
        if not piece:
            break
        text += piece.decode(errors="replace")
        if answers and answers[0][0] in text[read_to:]:
            read_to = len(text)
            os.write(terminal, answers.pop(0)[1].encode())
    return text


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the other end is closed
        return b""
