"""A child process that never outlives us, awaitable from any event loop.

`asyncio`'s own subprocesses belong to the loop that started them; this one belongs to the process, so a
server can be started in one loop and stopped in another. The kernel sends SIGINT to the child when the
*thread* that spawned it ends: spawn from the main thread.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import IO, Self

from gpudev.adapters.local.processes.linux import raise_priority

_LAUNCHER = Path(__file__).with_name("die_with_parent.py")


class ChildProcess:
    """One running child; `wait` reaps it."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        prefix: Sequence[str] = (),
        output: IO[bytes],
        environment: Mapping[str, str],
        inherit: Sequence[int] = (),
    ) -> None:
        """Start `argv`, an absolute program and its arguments, behind `prefix`, which must exec it in place.

        `inherit` are descriptors that stay open in the child, such as a lock it is to hold while it lives.
        """
        variables = [f"{name}={value}" for name, value in environment.items()]
        launch = [sys.executable, "-I", "-S", os.fspath(_LAUNCHER), str(os.getpid()), *variables, "--"]
        self._process = subprocess.Popen(
            [*prefix, *launch, *argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=tuple(inherit),
            cwd="/",
            # Ctrl-C in the terminal reaches us alone: we stop the child once nobody needs it any more.
            start_new_session=True,
        )
        raise_priority(self._process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """None while it runs; a negative number is the signal that ended it."""
        return self._process.poll()

    async def wait(self) -> int:
        """The exit status, once it has ended. Any number of tasks may wait; cancelling leaves it running."""
        if self._process.poll() is None:
            descriptor = os.pidfd_open(self.pid)
            try:
                await _readable(descriptor)
            finally:
                os.close(descriptor)
        return self._process.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Leave no child behind when the task that waits for it is cancelled."""
        self._process.kill()
        await self.wait()

    async def end(self, first: signal.Signals, then: signal.Signals, *, within: timedelta) -> int:
        """Ask with `first`; after `within` insist with `then`, and as long again later kill."""
        for request in (first, then):
            self._process.send_signal(request)
            try:
                async with asyncio.timeout(within.total_seconds()):
                    return await self.wait()
            except TimeoutError:
                continue
        self._process.kill()
        return await self.wait()


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
