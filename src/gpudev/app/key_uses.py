"""When each key was last used: collected in memory and written now and then, never by a request itself.

What was collected is lost when the process is killed, and that is fine: it is a hint for people.
"""

from __future__ import annotations

import asyncio
from datetime import datetime

from gpudev.domain.errors import StoreUnavailable
from gpudev.ports.api_keys import ApiKeys
from gpudev.ports.clock import Clock


class KeyUses:
    def __init__(self, api_keys: ApiKeys, clock: Clock, every_seconds: float) -> None:
        self._api_keys = api_keys
        self._clock = clock
        self._every_seconds = every_seconds
        self._uses: dict[bytes, datetime] = {}

    def note(self, key_hash: bytes) -> None:
        self._uses[key_hash] = self._clock.now()

    async def write(self) -> None:
        """What the database does not take now is tried again with the next ones."""
        uses, self._uses = self._uses, {}
        if not uses:
            return
        try:
            await self._api_keys.note_uses(uses)
        except StoreUnavailable:
            self._uses = {**uses, **self._uses}

    async def run(self) -> None:
        """Write until cancelled, and once more then."""
        try:
            while True:
                await asyncio.sleep(self._every_seconds)
                await self.write()
        finally:
            await self.write()
