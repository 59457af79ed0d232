"""What is over and changes no more, read from a streaming replica while there is one that answers."""

from __future__ import annotations

import time

import asyncpg
import structlog

from gpudev.adapters.postgres.reservations import PostgresReservations
from gpudev.domain.errors import StoreUnavailable
from gpudev.ports.reservations import ListQuery, Page

_PAUSE_SECONDS = 10.0
"""How long a replica that did not answer is left alone: nobody shall wait for it with every request."""

_log = structlog.get_logger(__name__)


class PostgresHistory:
    """Reads from the replica, and from the primary where that cannot be."""

    def __init__(self, primary: PostgresReservations, replica: PostgresReservations) -> None:
        self._primary = primary
        self._replica = replica
        self._resumes_at = 0.0

    async def list_page(self, query: ListQuery) -> Page:
        if time.monotonic() < self._resumes_at:
            return await self._primary.list_page(query)
        try:
            return await self._replica.list_page(query)
        except (StoreUnavailable, asyncpg.SyntaxOrAccessError) as error:
            # The latter: it has not heard of our tables yet, or not of our right to read them.
            self._resumes_at = time.monotonic() + _PAUSE_SECONDS
            _log.warning("replica_unavailable", error=str(error), pause_seconds=_PAUSE_SECONDS)
        return await self._primary.list_page(query)
