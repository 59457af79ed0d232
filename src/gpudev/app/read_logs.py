"""Read what the dev server of a reservation has written about itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from gpudev.domain.errors import NotFound
from gpudev.domain.reservation import Reservation
from gpudev.ports.logs import LogQuery, ServerLogs


@dataclass(frozen=True, slots=True)
class ReadLogs:
    logs: ServerLogs | None
    """None where this process has no way to the servers."""

    async def __call__(self, reservation: Reservation, query: LogQuery) -> AsyncGenerator[bytes, None]:
        """It may take hours: `app.key_watch` ends it with the key."""
        if self.logs is None or not reservation.is_placed:
            raise NotFound(
                f"Reservation {reservation.id8} is {reservation.status}: no log of it was found.",
                hint=f"What happened to it is told by: gpu-dev show {reservation.id8}",
            )
        async for chunk in self.logs.read(reservation.id, query):
            yield chunk
