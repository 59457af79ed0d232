"""How often somebody may do something: a token bucket, as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Rate:
    """So many at once, and so many a second after that. Zero a second means without limit."""

    per_second: float
    burst: int

    @property
    def is_unlimited(self) -> bool:
        return self.per_second <= 0


@dataclass(frozen=True, slots=True)
class Bucket:
    tokens: float
    at: datetime


NO_WAIT = timedelta(0)


def take(bucket: Bucket | None, rate: Rate, now: datetime) -> tuple[Bucket, timedelta]:
    """Take one token. The bucket after that, and how long to wait if there was none; nothing was taken then.

    A clock that was set back refills nothing and takes nothing away.
    """
    filled = _refill(bucket or Bucket(rate.burst, now), rate, now)
    if filled.tokens >= 1:
        return Bucket(filled.tokens - 1, filled.at), NO_WAIT
    return filled, timedelta(seconds=(1 - filled.tokens) / rate.per_second)


def find_wait(blocking: datetime | None, window: timedelta, now: datetime) -> timedelta:
    """How long until an event that is one too many has left the window; none if there is no such event."""
    return max(NO_WAIT, blocking + window - now) if blocking else NO_WAIT


def _refill(bucket: Bucket, rate: Rate, now: datetime) -> Bucket:
    passed = max(0.0, (now - bucket.at).total_seconds())
    return Bucket(min(rate.burst, bucket.tokens + passed * rate.per_second), now)
