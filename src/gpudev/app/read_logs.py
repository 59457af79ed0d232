"""Read what the dev server of a reservation has written about itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from gpudev.domain.errors import NotFound
from gpudev.domain.reservation import Reservation
from gpudev.ports.job_outputs import JobOutputs
from gpudev.ports.logs import LogQuery, ServerLogs


@dataclass(frozen=True, slots=True)
class ReadLogs:
    logs: ServerLogs | None
    """None where this process has no way to the servers."""
    job_outputs: JobOutputs

    async def __call__(self, reservation: Reservation, query: LogQuery) -> AsyncGenerator[bytes, None]:
        """It may take hours: `app.key_watch` ends it with the key."""
        if reservation.is_ended and (output := await self._find_output(reservation, query)) is not None:
            yield output
            return
        if self.logs is None or not reservation.is_placed:
            raise NotFound("log_not_found", reservation=reservation.id, status=reservation.state.status)
        async for chunk in self.logs.read(reservation.id, query):
            yield chunk

    async def _find_output(self, reservation: Reservation, query: LogQuery) -> bytes | None:
        """The end of what its command wrote: that is kept when the server is not."""
        output = await self.job_outputs.find(reservation.id)
        if output is None:
            return None
        lines = output.splitlines(keepends=True)
        kept = lines if query.tail is None else lines[max(0, len(lines) - query.tail) :]
        return "".join(kept).encode()
