"""A hostile dev server: it takes every free port of a range, again and again, and holds them.

The file is the program that runs inside (`python3 - FIRST LAST`, read from standard input); it prints how
many ports it has each time that this grows.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from pathlib import Path

PYTHON_FOLDER = sys.base_prefix
"""The sandbox must show it."""
PROGRAM = Path(__file__) if "__file__" in globals() else Path()


def take_ports_command(ports: range) -> str:
    """For a shell inside a dev server, with `PROGRAM` as its input."""
    return f"exec {os.path.realpath(sys.executable)} - {ports.start} {ports.stop - 1}"


def find_free_range(count: int) -> range:
    """So many ports in a row that nobody has just now; not among those of other tests."""
    start = 20000 + os.getpid() % 90 * 100
    for first in range(start, 30000, count):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return range(first, first + count)
    raise AssertionError(f"There are no {count} free ports in a row.")


def take_ports(first: int, last: int) -> None:
    taken: dict[int, socket.socket] = {}
    while True:
        before = len(taken)
        for port in range(first, last + 1):
            if port not in taken:
                with contextlib.suppress(OSError):
                    taken[port] = socket.create_server(("127.0.0.1", port))
        if len(taken) > before:
            sys.stdout.write(f"{len(taken)}\n")
            sys.stdout.flush()
        time.sleep(0.02)


if __name__ == "__main__" and len(sys.argv) > 1:
    take_ports(*map(int, sys.argv[1:]))
