"""The figures of the last reconciliation, for Prometheus: whichever process made it, the API shows it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from gpudev.app.figures import keep_showing
from gpudev.ports.health import Health
from gpudev.ports.ledger import DiskLedger
from gpudev.telemetry import DISK_RECONCILIATION, DISK_RECONCILIATION_TIME

_EVERY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ShowDiskFigures:
    ledger: DiskLedger
    health: Health

    async def run(self) -> None:
        """Until cancelled."""
        await keep_showing(self.show, self.health, _EVERY_SECONDS)

    async def show(self) -> None:
        last = await self.ledger.find_last()
        if last is None:
            return
        for name, value in asdict(last.statistics).items():
            DISK_RECONCILIATION.labels(name).set(value)
        DISK_RECONCILIATION_TIME.set(last.at.timestamp())
