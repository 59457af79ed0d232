"""How much of a GPU type one user may have: GPUs at once, requests that wait, GPU-hours in a period.

What would go beyond the last two is refused when it is asked for. GPUs at once are a matter of time: such a
request waits, in the plan, until enough of the user's own are given back. A slot of a CPU type counts as
one GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from gpudev.domain.errors import QuotaExceeded
from gpudev.domain.reservation import Reservation

EVERYTHING = "*"
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Quota:
    """None: as much as there is."""

    gpus: int | None = None
    """At once, of those that run."""
    waiting: int | None = None
    """Requests that wait."""
    gpu_hours: float | None = None
    """In any period: those that were used, and those that are reserved."""
    period: timedelta = timedelta(days=7)


NO_LIMIT = Quota()


@dataclass(frozen=True, slots=True)
class QuotaRule:
    """Whom a quota is for; `*` stands for every user, or for every type."""

    user: str
    gpu_type: str
    quota: Quota

    def fits(self, username: str, gpu_type: str) -> bool:
        return self.user in {EVERYTHING, username} and self.gpu_type in {EVERYTHING, gpu_type}


@dataclass(frozen=True, slots=True)
class Quotas:
    rules: tuple[QuotaRule, ...] = ()

    def find(self, username: str, gpu_type: str) -> Quota:
        """That of the most exact rule: one for this user, then one for this type, then any other."""
        fitting = [rule for rule in self.rules if rule.fits(username, gpu_type)]
        exact = max(
            fitting, key=lambda rule: (rule.user != EVERYTHING, rule.gpu_type != EVERYTHING), default=None
        )
        return exact.quota if exact else NO_LIMIT


@dataclass(frozen=True, slots=True)
class Use:
    """What a user has of a type already."""

    waiting: int = 0
    gpu_hours: float = 0.0
    """Used within the period, and reserved."""


def count_slots(reservation: Reservation) -> int:
    """On all nodes together; a CPU reservation takes one."""
    return max(1, reservation.gpu_count)


def check_quota(asked: Reservation, quota: Quota, use: Use) -> None:
    """Refuse a request that goes beyond the quota of its user, with the numbers."""
    slots = count_slots(asked)
    what = f"{asked.gpu_type} GPUs"
    if quota.gpus is not None and slots > quota.gpus:
        raise QuotaExceeded(
            f"{slots} {what} are more than your quota of {quota.gpus} at once.",
            hint=f"Ask for {quota.gpus} at most with --gpus." if quota.gpus else "Choose another --gpu-type.",
        )
    if quota.waiting is not None and use.waiting >= quota.waiting:
        raise QuotaExceeded(
            f"{use.waiting} of your requests wait for {what}; your quota is {quota.waiting}.",
            hint="Cancel one that you do not need any more, or wait until one starts: gpu-dev list",
        )
    hours = slots * (asked.duration / _HOUR)
    if quota.gpu_hours is not None and use.gpu_hours + hours > quota.gpu_hours:
        left = max(0.0, quota.gpu_hours - use.gpu_hours)
        raise QuotaExceeded(
            f"{hours:.1f} GPU-hours of {asked.gpu_type} are more than you have left: {use.gpu_hours:.1f} of "
            f"your {quota.gpu_hours:g} in {quota.period / _DAY:g} days are used or reserved.",
            hint=f"Ask for {left / slots:.1f} hours at most with --hours."
            if left
            else "Wait until older ones are over the period.",
        )
