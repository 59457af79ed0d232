"""Seals the audit log in the background, so that nobody who writes to it waits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import structlog

from gpudev.domain.errors import StoreUnavailable
from gpudev.ports.audit import AuditLog
from gpudev.ports.health import Health

BATCH = 1000
"""Entries under one seal at most."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SealAudit:
    audit: AuditLog
    health: Health
    every_seconds: float

    async def __call__(self) -> None:
        """Seal all that has no seal yet.

        Each seal's hash goes into the log of the server as well. Kept elsewhere, it shows a chain that was
        made anew from the beginning.
        """
        while seal := await self.audit.seal(BATCH):
            _log.info("audit_sealed", number=seal.number, entries=seal.entries, hash=seal.hash.hex())
            if seal.entries < BATCH:
                return

    async def run(self) -> None:
        while True:
            try:
                # The schema may not be there yet: the API starts beside the database.
                await self.health.check()
                await self()
            except StoreUnavailable as error:
                _log.warning("audit_not_sealed", error=error.message)
            await asyncio.sleep(self.every_seconds)
