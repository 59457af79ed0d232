"""The findings of a simulation for people and for programs, and a chart of how long people waited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from xml.etree import ElementTree as ET

from gpudev.app.simulation.findings import Findings, Forecasts
from gpudev.domain.queue import find_quantile
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


_WIDTH, _HEIGHT = 720, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 20, 30, 50
_COLOURS = ("#0b6e4f", "#b5542c", "#3b5b92", "#777777")
_POINTS = 200


def draw_waits(found: Sequence[Findings]) -> str:
    """An SVG file."""
    longest = max((find_quantile(one.waits, 0.99) for one in found if one.waits), default=0) or 1.0
    root = ET.Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        width=str(_WIDTH),
        height=str(_HEIGHT),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
    )
    root.set("font-family", "sans-serif")
    root.set("font-size", "12")
    _write(root, say(fact("simulation_chart")), _LEFT, 18)
    _draw_axes(root, longest)
    for number, one in enumerate(found):
        colour = _COLOURS[number % len(_COLOURS)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in _curve(one.waits, longest))
        ET.SubElement(
            root, "polyline", {"points": points, "fill": "none", "stroke": colour, "stroke-width": "2"}
        )
        _write(root, one.queue, _WIDTH - _RIGHT - 80, _HEIGHT - _BOTTOM - 20 - 18 * number, colour)
    return ET.tostring(root, encoding="unicode") + "\n"


def _curve(waits: Sequence[float], longest: float) -> list[tuple[float, float]]:
    """Through as many of them as can be told apart."""
    if not waits:
        return []
    places = sorted({int(part * (len(waits) - 1) / _POINTS) for part in range(_POINTS + 1)})
    return [
        (_x(min(waits[place], longest), longest), _y((place + 1) / len(waits)))
        for place in places
        if waits[place] <= longest
    ]


def _draw_axes(root: ET.Element, longest: float) -> None:
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = f"{_y(part):.1f}"
        ET.SubElement(
            root, "line", {"x1": str(_LEFT), "x2": str(_WIDTH - _RIGHT), "y1": y, "y2": y, "stroke": "#ddd"}
        )
        _write(root, f"{part:.0%}", 20, _y(part) + 4)
        hours = part * longest
        _write(root, f"{hours:.1f} h", _x(hours, longest) - 12, _HEIGHT - _BOTTOM + 20)


def _write(root: ET.Element, words: str, x: float, y: float, colour: str = "#222") -> None:
    text = ET.SubElement(root, "text", {"x": f"{x:.1f}", "y": f"{y:.1f}", "fill": colour})
    text.text = words


def _x(hours: float, longest: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * hours / longest


def _y(part: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * part
