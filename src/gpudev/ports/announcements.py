"""Telling any number of listeners what changed, without ever waiting for one of them.

What a cluster needs to give `Cluster.changes`; every adapter has one of these.
"""

from __future__ import annotations

import asyncio
import weakref
from typing import Self

from gpudev.ports.cluster import ClusterChange


class Listener:
    """One listener's pending changes. The same hint twice is one hint, so what is kept stays small."""

    def __init__(self) -> None:
        self._pending: dict[ClusterChange, None] = {}
        self._wake = asyncio.Event()
        self._is_closed = False
        self._failure: BaseException | None = None

    def tell(self, change: ClusterChange) -> None:
        self._pending[change] = None
        self._wake.set()

    def close(self, failure: BaseException | None = None) -> None:
        self._is_closed = True
        self._failure = failure
        self._wake.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ClusterChange:
        while not self._pending:
            if self._failure is not None:
                raise self._failure
            if self._is_closed:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        change = next(iter(self._pending))
        del self._pending[change]
        return change


class Announcements:
    """Listeners come by `listen` and go by being dropped."""

    def __init__(self) -> None:
        self._listeners: weakref.WeakSet[Listener] = weakref.WeakSet()

    def listen(self) -> Listener:
        listener = Listener()
        self._listeners.add(listener)
        return listener

    def tell(self, *changes: ClusterChange) -> None:
        for listener in tuple(self._listeners):
            for change in changes:
                listener.tell(change)

    def close(self, failure: BaseException | None = None) -> None:
        """Nothing will be told any more; a listener that must not go deaf unnoticed learns why."""
        for listener in tuple(self._listeners):
            listener.close(failure)
