"""Ends what is open for long when the key that it was opened with is revoked: event streams, logs, tunnels.

Every process hears of revocations from the database. A signal may be lost, so keys are checked now and then
as well.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from gpudev.app.identity.authentication import Caller, KeyOwners
from gpudev.domain.names import UserId
from gpudev.ports.queue import Channel, Signal, Signals

T = TypeVar("T")

_END: Final = object()


class KeyWatch:
    """Tells those who hold something open in this process that keys of their user were revoked."""

    def __init__(self, owners: KeyOwners, every_seconds: float = 15) -> None:
        self._owners = owners
        self._every_seconds = every_seconds
        self._holders: defaultdict[UserId, set[asyncio.Event]] = defaultdict(set)
        self.changed = asyncio.Event()
        """Set at every signal, whoever it is about; for one who looks after many holders at once."""

    def hear(self, signal: Signal | None) -> None:
        """A signal of `Channel.KEYS`; None and an empty payload are about everybody."""
        payload = signal.payload if signal else ""
        users = [UserId(int(payload))] if payload else list(self._holders)
        for user_id in users:
            for revoked in self._holders.get(user_id, ()):
                revoked.set()
        self.changed.set()

    async def run(self, signals: Signals) -> None:
        """Listen; for a process in which nothing else does."""
        async for signal in signals.listen(Channel.KEYS):
            self.hear(signal)

    async def guard(self, caller: Caller, stream: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """The stream, for as long as the caller's key is good; then the error of a key that is not."""
        loop = asyncio.get_running_loop()
        with self._holding(caller.user_id) as revoked:
            following, waiting = asyncio.create_task(_next(stream)), asyncio.create_task(revoked.wait())
            # At once: the key may have been revoked between the request's own check and this line.
            revoked.set()
            check_at = 0.0
            try:
                while True:
                    if revoked.is_set() or loop.time() >= check_at:
                        revoked.clear()
                        await self._owners.get(caller.key_hash)
                        check_at = loop.time() + self._every_seconds
                        waiting.cancel()
                        waiting = asyncio.create_task(revoked.wait())
                    if following.done():
                        item = following.result()
                        if item is _END:
                            return
                        yield item  # type: ignore[misc]  # it is not the end
                        following = asyncio.create_task(_next(stream))
                    pause = max(0.0, check_at - loop.time())
                    await asyncio.wait(
                        {following, waiting}, timeout=pause, return_when=asyncio.FIRST_COMPLETED
                    )
            finally:
                following.cancel()
                waiting.cancel()
                await asyncio.gather(following, waiting, return_exceptions=True)
                await stream.aclose()

    @contextmanager
    def _holding(self, user_id: UserId) -> Iterator[asyncio.Event]:
        revoked = asyncio.Event()
        self._holders[user_id].add(revoked)
        try:
            yield revoked
        finally:
            self._holders[user_id].discard(revoked)
            if not self._holders[user_id]:
                del self._holders[user_id]


async def _next(stream: AsyncGenerator[T, None]) -> T | object:
    return await anext(stream, _END)
