"""The time, as something that can be handed in and moved by a test."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The present moment, aware and in UTC."""
        ...
