"""How good the forecasts of the queue were, for Prometheus."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from gpudev.app.figures import keep_showing
from gpudev.app.preview import Preview
from gpudev.ports.health import Health
from gpudev.telemetry import FORECASTS

_EVERY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ShowForecastFigures:
    preview: Preview
    health: Health

    async def run(self) -> None:
        """Until cancelled."""
        await keep_showing(self.show, self.health, _EVERY_SECONDS)

    async def show(self) -> None:
        for measured in await self.preview.measure_accuracy():
            figures = asdict(measured)
            gpu_type = figures.pop("gpu_type")
            for name, value in figures.items():
                if value is not None:
                    FORECASTS.labels(gpu_type, name).set(value)
