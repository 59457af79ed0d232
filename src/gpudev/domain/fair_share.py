"""Fair share: who has used less is offered freed room first.

Use is counted in GPU-hours, and what was used long ago counts less: half as much after each half-life. It
decides about the order in which room that came back is offered, and nothing else; it takes no promised time
from anybody.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class FairShare:
    half_life: timedelta

    @property
    def remembers(self) -> timedelta:
        """What is older counts less than a thousandth, and is forgotten."""
        return 10 * self.half_life


def weigh_use(slots: int, start: datetime, end: datetime, now: datetime, half_life: timedelta) -> float:
    """The GPU-hours of one reservation, each counted by how long ago it was."""
    if end <= start:
        return 0.0
    scale = half_life / _HOUR / math.log(2)
    return slots * scale * (_decay(now - end, half_life) - _decay(now - start, half_life))


def _decay(age: timedelta, half_life: timedelta) -> float:
    return math.exp2(-(age / half_life))
