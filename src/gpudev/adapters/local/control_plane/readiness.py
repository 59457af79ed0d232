"""How a process tells the one that started it that it is ready: a few words through an inherited pipe."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass

ENVIRONMENT_NAME = "GPU_DEV_READY_FD"


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
