"""A program, given a socket's descriptor: it has everything imported, and forks dev servers.

Importing an SSH server takes six times as long as starting a sandbox, so it is done once. The zygote
holds no secrets and no locks, and it does nothing but fork: an order comes in on its socket with the
descriptors that go with it, and a fork becomes the keeper of a new dev server. It ends when its owner
closes the socket or dies; keepers and servers live on.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys

from gpudev.adapters.local.devserver.keeper import keep
from gpudev.adapters.local.devserver.order import HELLO, OrderDescriptors, StartOrder

MAX_ORDER_BYTES = 64 * 1024
_DESCRIPTORS = 2


def take_order(owner: socket.socket) -> tuple[StartOrder, OrderDescriptors] | None:
    """In the zygote: until the owner is gone, then None. In each fork: the order that it is for."""
    while True:
        message, received, _, _ = socket.recv_fds(owner, MAX_ORDER_BYTES, _DESCRIPTORS)
        if not message:
            return None
        if os.fork() == 0:
            owner.close()
            return StartOrder.from_json(message.decode()), OrderDescriptors(*received)
        for descriptor in received:
            os.close(descriptor)


def main() -> int:
    # Ended keepers are reaped by the kernel: nobody asks how they ended.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.freeze()
    owner = socket.socket(fileno=int(sys.argv[1]))
    owner.send(HELLO)
    order = take_order(owner)
    if order is None:
        return 0
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    return keep(*order)


if __name__ == "__main__":
    sys.exit(main())
