"""The figures of the last reconciliation, for Prometheus: whichever process made it, the API shows it."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import asdict, dataclass

from gpudev.domain.errors import StoreUnavailable
from gpudev.ports.ledger import DiskLedger
from gpudev.ports.store import Health
from gpudev.telemetry import DISK_RECONCILIATION, DISK_RECONCILIATION_TIME

_EVERY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ShowDiskFigures:
    ledger: DiskLedger
    health: Health

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            # Old figures are better than none; their time tells that they are old.
            with contextlib.suppress(StoreUnavailable):
                await self.health.check()
                await self.show()
            await asyncio.sleep(_EVERY_SECONDS)

    async def show(self) -> None:
        last = await self.ledger.find_last()
        if last is None:
            return
        for name, value in asdict(last.statistics).items():
            DISK_RECONCILIATION.labels(name).set(value)
        DISK_RECONCILIATION_TIME.set(last.at.timestamp())
