"""Turns: when each item is worked on next, and which process has it in hand.

A claim, which reads the item in the same statement, is a method of the item's own store. Every method is one
transaction and raises `StoreUnavailable` when the database does not answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol


class Kind(StrEnum):
    """What has turns."""

    RESERVATION = "reservation"
    DISK = "disk"


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on one item until the lease runs out."""

    kind: Kind
    key: str
    token: str
    asked: int
    """How often somebody else had asked for a turn; whoever asks during this turn gets another one."""
    defects: int
    """How many turns in a row failed by an error of ours."""


class Turns(Protocol):
    async def end(self, lease: Lease, next_turn_at: datetime | None, *, defects: int = 0) -> None:
        """End the lease. The next turn comes then, or at once where somebody asked during this one."""
        ...

    async def take_over(self, kind: Kind, now: datetime, within: timedelta | None = None) -> None:
        """For the start of a controller that knows itself to be the only one: no lease is anybody's.

        What was to have a turn `within` that time has it now, since nobody knows what happened meanwhile;
        None: however late that turn was to come.
        """
        ...

    async def list_due(self, kind: Kind, now: datetime, limit: int) -> tuple[str, ...]:
        """The keys whose turn has come and that nobody has leased."""
        ...

    async def find_next(self, kind: Kind, after: datetime) -> datetime | None:
        """When the next turn comes, later than `after`; a leased one comes when its lease runs out."""
        ...

    async def is_known(self, kind: Kind, key: str) -> bool:
        """Whether there is such an item."""
        ...
