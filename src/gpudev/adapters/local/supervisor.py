"""Keeps one program of the control plane running: it is restarted whenever it ends by itself.

A program tells its parent that it is ready by a few words through an inherited pipe.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from gpudev.adapters.local.processes.linux import raise_priority
from gpudev.domain.errors import GpuDevError
from gpudev.texts.fact import Fact, fact
from gpudev.texts.sentences import say

ENVIRONMENT_NAME = "GPU_DEV_READY_FD"
_SHORT_LIFE_SECONDS = 10.0
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
_STOP_SECONDS = 15.0
_LOG_LIMIT = 10_000_000
_TAIL_LINES = 5
_CODE = "start_failed"


def tell_ready(descriptor: int, words: str = "ready") -> None:
    """Say it once; a negative descriptor means that nobody asked, a broken pipe that nobody waits."""
    if descriptor >= 0:
        with contextlib.suppress(BrokenPipeError), os.fdopen(descriptor, "w", encoding="utf-8") as pipe:
            pipe.write(words)


@dataclass(slots=True)
class ReadyPipe:
    """The asking side. Give `write_end` to the child, then `close_write_end`, then wait."""

    read_end: int
    write_end: int

    @classmethod
    def open(cls) -> ReadyPipe:
        return cls(*os.pipe())

    def close_write_end(self) -> None:
        os.close(self.write_end)

    def close(self) -> None:
        os.close(self.read_end)

    def read(self) -> str:
        """What the child said, once it is ready; nothing if it ended without a word. Blocks until then."""
        with os.fdopen(self.read_end, encoding="utf-8") as pipe:
            return pipe.read()

    async def wait(self) -> str:
        """The same, without blocking the others."""
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(self.read_end, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self.read_end)
        return self.read()


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    argv: Sequence[str]
    log: Path | None = None
    """The file that gets all of its output; None: it goes where ours goes."""
    environment: Mapping[str, str] = field(default_factory=dict)
    descriptors: Sequence[int] = ()
    """Open files that the program inherits, such as the socket that it serves."""


class Supervisor:
    """One program. It ends with us: it is told our pid, and asks the kernel for a signal at our death.

    `bury` is called with the pid of each process that has ended, to remove what it left behind.
    """

    def __init__(self, program: Program, bury: Callable[[int], None] = lambda _pid: None) -> None:
        self._program = program
        self._bury = bury
        self._process: asyncio.subprocess.Process | None = None
        self._stop = asyncio.Event()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Return once the program says that it is ready; raise if it ends before that."""
        pipe = await self._spawn()
        if not await pipe.wait():
            raise _start_failed(self._program)

    async def keep_running(self) -> None:
        """Start it again whenever it ends; at longer and longer intervals if it ends at once."""
        clock = asyncio.get_running_loop().time
        pause = 0.0
        while self._process is not None:
            since = clock()
            status = await self._process.wait()
            if self._stop.is_set():
                return
            self._bury(self._process.pid)
            was_short = clock() - since < _SHORT_LIFE_SECONDS
            pause = min(max(pause * 2, _FIRST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS) if was_short else 0.0
            _tell(fact("program_restarted", program=self._program.name, status=status))
            await asyncio.sleep(pause)
            await self._start_again()

    async def _start_again(self) -> None:
        """Out of processes, memory or disk: whatever is missing now may be there in a moment."""
        while not self._stop.is_set():
            try:
                pipe = await self._spawn()
            except OSError as error:
                _tell(fact("program_not_startable", program=self._program.name, error=str(error)))
                await asyncio.sleep(_LONGEST_PAUSE_SECONDS)
            else:
                pipe.close()
                return

    async def stop(self) -> None:
        self._stop.set()
        if self._process is None or self._process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), _STOP_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def _spawn(self) -> ReadyPipe:
        pipe = ReadyPipe.open()
        own = {"GPU_DEV_PARENT_PID": str(os.getpid()), ENVIRONMENT_NAME: str(pipe.write_end)}
        with _output(self._program.log) as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._program.argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self._program.environment, **own},
                pass_fds=(*self._program.descriptors, pipe.write_end),
                # Ctrl-C in the terminal reaches us alone, and we stop the programs in their order.
                start_new_session=True,
            )
        raise_priority(self._process.pid)
        pipe.close_write_end()
        return pipe


@contextmanager
def _output(log: Path | None) -> Iterator[IO[bytes] | None]:
    if log is None:
        yield None
        return
    if log.exists() and log.stat().st_size > _LOG_LIMIT:
        log.replace(log.with_suffix(".log.1"))
    with log.open("ab") as file:
        yield file


def _tell(what: Fact) -> None:
    sys.stderr.write(f"{say(what)}\n")
    sys.stderr.flush()


def _start_failed(program: Program) -> GpuDevError:
    if program.log is None:
        return GpuDevError("program_not_started", code=_CODE, program=program.name)
    lines = program.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL_LINES:]
    return GpuDevError(
        "program_not_started_with_log",
        code=_CODE,
        program=program.name,
        words=" | ".join(lines),
        log=str(program.log),
    )
