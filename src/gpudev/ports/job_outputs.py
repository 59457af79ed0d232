"""The end of what the commands of `gpu-dev submit` wrote, for when their dev servers are gone."""

from __future__ import annotations

from typing import Protocol

from gpudev.domain.names import ReservationId


class JobOutputs(Protocol):
    async def keep(self, reservation_id: ReservationId, output: str) -> None:
        """A second time replaces the first. The text is at most `domain.job.MAX_OUTPUT` bytes long."""
        ...

    async def find(self, reservation_id: ReservationId) -> str | None:
        """None if none was kept."""
        ...
