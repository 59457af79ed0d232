"""How long people waited, as a picture: which part of them for at most so many hours, for each queue."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from gpudev.app.simulation.findings import Findings
from gpudev.domain.queue import find_quantile
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say

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
