"""The log of a dev server on this machine: a file beside its record."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path

from gpudev.adapters.local.records import Records
from gpudev.domain.errors import NotFound
from gpudev.domain.names import ReservationId, id8
from gpudev.ports.logs import LogQuery

_PAUSE_SECONDS = 0.5
_CHUNK = 64 * 1024


class LocalLogs:
    def __init__(self, state_dir: Path) -> None:
        self._records = Records(state_dir)

    async def read(self, reservation_id: ReservationId, query: LogQuery) -> AsyncIterator[bytes]:
        files = self._records.files_of(id8(reservation_id))
        record = await asyncio.to_thread(files.find_record)
        if record is None or record.spec.reservation_id != reservation_id or not files.log_path.exists():
            raise NotFound("log_without_server", id=reservation_id)
        with files.log_path.open("rb") as log:
            if query.tail is None:
                yield log.read()
            else:
                yield b"".join(deque(log, maxlen=query.tail))
            while query.follow and files.log_path.exists():
                if chunk := log.read(_CHUNK):
                    yield chunk
                else:
                    await asyncio.sleep(_PAUSE_SECONDS)
