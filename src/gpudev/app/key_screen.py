"""Keeps wrong keys away from the database, without keeping out a good one.

What is no key at all is rejected at once. An address that has shown too many wrong keys is told so before the
database is asked, if its key was wrong before. A key that was not seen yet may be a good one, of a neighbour
at the same address, and is looked up; one at a time, so that guesses cannot use up the connections to the
database.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from dataclasses import dataclass, field

from gpudev.app.limits import Limiter, origin_of
from gpudev.domain.errors import Unauthenticated
from gpudev.ports.users import ShownKey, Users

MOST_KEPT = 10_000
_KEY = re.compile(r"[A-Za-z0-9_-]{8,128}")


class RecentKeys:
    """The hashes of keys that were seen last."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._hashes: OrderedDict[bytes, None] = OrderedDict()

    def __contains__(self, key_hash: bytes) -> bool:
        return key_hash in self._hashes

    def add(self, key_hash: bytes) -> None:
        self._hashes[key_hash] = None
        self._hashes.move_to_end(key_hash)
        if len(self._hashes) > self._most:
            self._hashes.popitem(last=False)

    def remove(self, key_hash: bytes) -> None:
        self._hashes.pop(key_hash, None)


@dataclass(frozen=True, slots=True)
class KeyScreen:
    users: Users
    wrong_keys: Limiter
    """For each origin. It stops nobody who has a good key, so that one bad neighbour locks no office out."""
    _good: RecentKeys = field(default_factory=RecentKeys)
    _wrong: RecentKeys = field(default_factory=RecentKeys)
    _lane: asyncio.Lock = field(default_factory=asyncio.Lock)

    def check_form(self, api_key: str, address: str) -> None:
        """Raises if this cannot be a key, whoever it would belong to."""
        if _KEY.fullmatch(api_key) is None:
            self.wrong_keys.take(origin_of(address))
            raise Unauthenticated("not_an_api_key")

    async def check(self, key: ShownKey, address: str) -> None:
        """Raises `TooManyRequests` for a wrong key from an address that has shown too many of them."""
        origin = origin_of(address)
        if key.key_hash in self._good or not self.wrong_keys.is_exhausted(origin):
            return
        if key.key_hash not in self._wrong:
            async with self._lane:
                if await self.users.find_by_key(key.key_hash, key.at) is not None:
                    return
        self._wrong.add(key.key_hash)
        self.wrong_keys.take(origin)

    def note_good(self, key: ShownKey) -> None:
        self._good.add(key.key_hash)

    def note_wrong(self, key: ShownKey, address: str) -> None:
        """Raises `TooManyRequests` if it is one too many."""
        self._good.remove(key.key_hash)
        self._wrong.add(key.key_hash)
        self.wrong_keys.take(origin_of(address))
