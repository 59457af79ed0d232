"""Waiting on plain descriptors in an event loop: pipes, terminals and pidfds.

asyncio's transports cannot share one terminal for both directions nor wait for a pidfd, and four small
coroutines can.
"""

from __future__ import annotations

import asyncio
import errno
import os

_BLOCK = 64 * 1024


async def wait_readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, _resolve, ready)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


async def wait_writable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_writer(descriptor, _resolve, ready)
    try:
        await ready
    finally:
        loop.remove_writer(descriptor)


async def read_some(descriptor: int) -> bytes:
    """The next bytes of a non-blocking descriptor; none at its end, which a terminal reports as EIO."""
    while True:
        try:
            return os.read(descriptor, _BLOCK)
        except BlockingIOError:
            await wait_readable(descriptor)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return b""


async def write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            await wait_writable(descriptor)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
