"""How a process tells the one that started it that it is ready: one byte through an inherited pipe."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import dataclass

ENVIRONMENT_NAME = "GPU_DEV_READY_FD"


def tell_ready(descriptor: int) -> None:
    """Say it once; a negative descriptor means that nobody asked, a broken pipe that nobody waits."""
    if descriptor >= 0:
        with contextlib.suppress(BrokenPipeError):
            os.write(descriptor, b"1")
        os.close(descriptor)


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

    def wait_blocking(self) -> bool:
        """The same as `wait`, for a process that has nothing else to do."""
        try:
            return os.read(self.read_end, 1) == b"1"
        finally:
            os.close(self.read_end)

    async def wait(self) -> bool:
        """True once the child is ready; False if it ended, or closed the pipe, without a word."""
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(self.read_end, readable.set)
        try:
            await readable.wait()
            return os.read(self.read_end, 1) == b"1"
        finally:
            loop.remove_reader(self.read_end)
            os.close(self.read_end)
