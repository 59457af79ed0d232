"""The findings of a simulation for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from gpudev.app.simulation.findings import Findings, Forecasts
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say


def format_findings(found: Sequence[Findings]) -> str:
    header = ["", *(one.queue for one in found)]
    rows = [
        [say(fact("simulation_requests")), *(f"{one.requests:,}" for one in found)],
        [say(fact("simulation_started")), *(f"{one.started:,}" for one in found)],
        [say(fact("simulation_rejected")), *(f"{one.rejected:,}" for one in found)],
        [say(fact("simulation_gave_up")), *(f"{one.gave_up:,}" for one in found)],
        [say(fact("simulation_utilisation")), *(f"{one.utilisation:.1%}" for one in found)],
        [say(fact("simulation_median_wait")), *(f"{one.median_wait:.2f}" for one in found)],
        [say(fact("simulation_mean_wait")), *(f"{one.mean_wait:.2f}" for one in found)],
        [say(fact("simulation_long_wait")), *(f"{one.long_wait:.2f}" for one in found)],
        [say(fact("simulation_fairness")), *(f"{one.fairness:.3f}" for one in found)],
    ]
    told = [one.forecasts for one in found if one.forecasts is not None]
    parts = [_align([header, *rows]), *(_align(_forecast_rows(one)) for one in told)]
    return "\n\n".join(parts)


def as_data(found: Sequence[Findings]) -> dict[str, object]:
    """Without the single waits, which only a chart needs."""
    plain = [asdict(one) for one in found]
    return {one.pop("queue"): {name: one[name] for name in one if name != "waits"} for one in plain}


def _forecast_rows(told: Forecasts) -> list[list[str]]:
    return [
        [say(fact("simulation_forecasts")), f"{told.told:,}"],
        *([say(fact("simulation_error", name=name)), f"{error:.2f}"] for name, error in told.errors.items()),
        [say(fact("simulation_bias")), f"{told.bias:.2f}"],
        [say(fact("simulation_coverage")), f"{told.coverage:.1%}"],
        [say(fact("simulation_promises_kept")), f"{told.promises_kept:.1%}"],
    ]


def _align(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
            ]
        ).rstrip()
        for row in rows
    )
