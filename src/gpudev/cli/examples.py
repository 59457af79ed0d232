"""Examples at the end of a command's help, one a line, as they can be typed."""

from __future__ import annotations

_AS_IT_STANDS = "\b"
"""To click: do not fold the lines of this paragraph."""


def examples(*lines: str) -> str:
    return "\n".join([_AS_IT_STANDS, "Examples:", *(f"  {line}" for line in lines)])
