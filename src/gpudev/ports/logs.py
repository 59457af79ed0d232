"""What dev servers have written about themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from gpudev.domain.names import ReservationId


@dataclass(frozen=True, slots=True)
class LogQuery:
    tail: int | None = None
    """Only so many of the last lines; None: all there are."""
    follow: bool = False
    """Go on with what is written from now on, until the server is gone."""


class ServerLogs(Protocol):
    """The log of a dev server: its start, its SSH server, and what else its first process says."""

    def read(self, reservation_id: ReservationId, query: LogQuery) -> AsyncIterator[bytes]:
        """`NotFound` at the first step if there is no server or no log of it yet."""
        ...
