"""Text that a dev server or another program said, made fit to be stored and shown.

PostgreSQL takes no NUL and no lone surrogate, terminals obey control characters, nobody reads megabytes.
"""

from __future__ import annotations

_CUT = "…"


def make_printable(text: str, longest: int) -> str:
    """One line of printable characters: `?` for each other one, and `…` at the end where it was cut."""
    shown = "".join(each if each.isprintable() else "?" for each in text[: longest + 1])
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}{_CUT}"
