"""Read what the dev server of a reservation has written about itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

from gpudev.app.login import Authenticate
from gpudev.domain.errors import NotFound
from gpudev.domain.reservation import Reservation
from gpudev.ports.clock import Clock
from gpudev.ports.logs import LogQuery, ServerLogs

_KEY_IS_CHECKED_EVERY = timedelta(seconds=15)


@dataclass(frozen=True, slots=True)
class ReadLogs:
    logs: ServerLogs | None
    """None where this process has no way to the servers."""
    authenticate: Authenticate
    clock: Clock

    async def __call__(
        self, key_hash: bytes, reservation: Reservation, query: LogQuery
    ) -> AsyncIterator[bytes]:
        """What may take hours is for as long as the key is good."""
        if self.logs is None or not reservation.is_placed:
            raise NotFound(
                f"Reservation {reservation.id8} is {reservation.status}: no log of it was found.",
                hint=f"What happened to it is told by: gpu-dev show {reservation.id8}",
            )
        checked_at = self.clock.now()
        async for chunk in self.logs.read(reservation.id, query):
            if self.clock.now() - checked_at >= _KEY_IS_CHECKED_EVERY:
                await self.authenticate(key_hash)
                checked_at = self.clock.now()
            yield chunk
