"""The SSH public keys that people have published, and the memory of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


class PublishedKeys(Protocol):
    """Where people publish their keys."""

    async def list_keys(self, github_user: str) -> tuple[str, ...]:
        """The keys of a user that a dev server takes, as lines; none for a user who is not there.

        `KeysUnavailable` when there is no proper answer within a few seconds.
        """
        ...


@dataclass(frozen=True, slots=True)
class StoredKeys:
    keys: tuple[str, ...]
    fetched_at: datetime


class KnownKeys(Protocol):
    """What was read last, for every replica and for the time in which nothing can be read."""

    async def find(self, github_user: str) -> StoredKeys | None: ...

    async def keep(self, github_user: str, stored: StoredKeys) -> None:
        """Replaces what was kept, unless that was read later."""
        ...
