"""What the queue has promised, how it turned out, and what it would promise next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from gpudev.domain.capacity import NodeRoom
from gpudev.domain.names import ReservationId, UserId
from gpudev.domain.policy import FairShare
from gpudev.domain.queue import Accuracy, Habits, Submission
from gpudev.domain.reservation import Reservation


@dataclass(frozen=True, slots=True)
class Outlook:
    """Everything that the plan of one GPU type follows from, as far as it is stored."""

    reservations: tuple[Reservation, ...]
    """All that wait, and all that hold room."""
    rooms: tuple[NodeRoom, ...]
    """The nodes in service when admission looked last."""
    habits: Habits
    disk_busy: frozenset[ReservationId] = frozenset()
    """Those of the waiting whose disk is not free: no room is kept for them."""


class Forecasts(Protocol):
    """Every method is one transaction and raises `StoreUnavailable` when the database does not answer."""

    async def read_outlook(self, gpu_type: str, since: datetime) -> Outlook:
        """For those who only ask: it locks nothing. Habits are learned from what started since then."""
        ...

    async def read_use(self, gpu_type: str, fair_share: FairShare, now: datetime) -> Mapping[UserId, float]:
        """What users have used of the type, in GPU-hours that count less the older they are."""
        ...

    async def list_submissions(self, gpu_type: str, since: datetime) -> tuple[Submission, ...]:
        """What was asked for since then and is over, in the order of coming; who asked is left out of it.

        Users are numbered: whoever replays this need not know them.
        """
        ...

    async def measure_accuracy(self, since: datetime, step: timedelta) -> tuple[Accuracy, ...]:
        """Of the forecasts for those who started since then, by type; a promise names a step so wide."""
        ...
