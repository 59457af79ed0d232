"""How a process that runs others is told to stop."""

from __future__ import annotations

import asyncio
import signal


def interrupted() -> asyncio.Event:
    """An event that is set by Ctrl-C, by a request to end, or by the loss of the terminal."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
