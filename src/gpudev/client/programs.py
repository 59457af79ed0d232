"""Programs of this machine, run to their end: OpenSSH's and `tar`, alone or joined by pipes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, Any

from gpudev.client.errors import ClientError, TimedOut
from gpudev.client.interruption import stopped_by

_READ_SIZE = 64 * 1024


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended and what it wrote; empty where its output was not captured."""

    exit_code: int
    """As the program gave it; negative: the number of the signal that ended it here."""
    stdout: str = ""
    stderr: str = ""


def run_program(words: Sequence[str], *, capture: bool = True, timeout: float | None = None) -> Finished:
    """One program without input; what it writes is captured, or goes where our own output goes."""
    (finished,) = run_joined(words, capture=capture, timeout=timeout)
    return finished


def run_joined(
    *commands: Sequence[str], capture: bool = True, timeout: float | None = None
) -> tuple[Finished, ...]:
    """Programs of which each reads what the one before it writes. `TimedOut` ends all of them."""
    with ExitStack() as cleanup:
        running: list[subprocess.Popen[bytes]] = []
        errors: list[IO[bytes]] = []
        for words in commands:
            source = running[-1].stdout if running else None
            is_piped = capture or len(running) + 1 < len(commands)
            if capture:
                # A file, not a pipe: nobody has to read it in time.
                errors.append(cleanup.enter_context(TemporaryFile()))
            process = _start(
                words,
                stdin=source or subprocess.DEVNULL,
                stdout=subprocess.PIPE if is_piped else None,
                stderr=errors[-1] if capture else None,
            )
            cleanup.callback(_end, process)
            if source is not None:
                # Ours is one end too many: the first must notice when the second is gone.
                source.close()
            running.append(process)
        output = _wait(running, timeout)
        return tuple(
            Finished(
                process.wait(),
                output.decode(errors="replace") if process is running[-1] else "",
                _read(errors[index]) if capture else "",
            )
            for index, process in enumerate(running)
        )


def stream_program(words: Sequence[str], take: Callable[[bytes], object]) -> int:
    """A program whose output is handed on as it comes; its errors go where ours go. Returns its exit code."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as output, ExitStack() as cleanup:
        with os.fdopen(writing, "wb", buffering=0) as its_end:
            process = _start(words, stdin=subprocess.DEVNULL, stdout=its_end)
        cleanup.callback(_end, process)
        with stopped_by(process.kill):
            while piece := output.read(_READ_SIZE):
                take(piece)
            return process.wait()


def _start(words: Sequence[str], **files: Any) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(words, **files)
    except FileNotFoundError as error:
        raise ClientError(
            f"There is no {words[0]} on this machine.", hint=_INSTALL.get(words[0], ""), code="no_program"
        ) from error


def _wait(running: Sequence[subprocess.Popen[bytes]], timeout: float | None) -> bytes:
    def stop() -> None:
        for process in running:
            process.kill()

    with stopped_by(stop):
        try:
            output, _ = running[-1].communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise TimedOut(f"The command did not end in {timeout:g} seconds.") from None
        for process in running:
            process.wait()
    return output or b""


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


_INSTALL = {
    "ssh": "Install the OpenSSH client.",
    "scp": "Install the OpenSSH client.",
    "tar": "Install tar.",
}
