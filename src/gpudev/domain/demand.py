"""What somebody asked for, and what they did with it: the demand that a queue is measured by."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Submission:
    at: datetime
    user: str
    gpus: int
    """On each of its nodes; a slot of a CPU type counts as one."""
    length: timedelta
    nodes: int = 1
    used: timedelta | None = None
    """Given back after so long; None: when its time is up."""
    extends: timedelta = timedelta()
    """Asked for shortly before its end, where it is not given back before."""
    gives_up: timedelta | None = None
    """Cancelled if it still waits after so long; None: it is waited for."""
