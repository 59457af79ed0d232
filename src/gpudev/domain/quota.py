"""How much of a GPU type one user may have: GPUs at once, waiting requests, reserved GPU-hours.

A request that exceeds the waiting requests or the GPU-hours is rejected when it is submitted. GPUs at once
are a matter of time: such a request waits, in the plan, until enough of the user's own are released. So are
GPUs that are held for long, which are a share of all there are. A slot of a CPU type counts as one GPU.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta

from gpudev.domain.errors import QuotaExceeded
from gpudev.domain.expiry import TimePolicy, count_steps
from gpudev.domain.reservation import Reservation
from gpudev.domain.schedule.room import Limit

EVERYTHING = "*"
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
_SHORTEST_HOURS = 0.1
_ROUNDING = 1e-9


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
    reserved_gpu_hours: float | None = None
    """At a time: those of waiting requests, and those that running ones have left."""
    long_share: float | None = None
    """The part of a type's GPUs that may be held for longer than `LONG` from now on; at least a node's."""
    long_share_nodes: int = 1
    """The share holds only where a type has so many nodes."""


LONG = timedelta(hours=4)
NO_LIMIT = Quota()
DEFAULT_QUOTA = Quota(waiting=30, reserved_gpu_hours=768, long_share=1 / 13, long_share_nodes=13)
"""Chosen by simulation, see `docs/decisions/0046-long-reservations-have-a-share.md`. The largest single
request, 32 GPUs for 24 hours, is 768 GPU-hours. On fewer than 13 nodes a thirteenth is less than a node, and
nobody is to wait beside idle GPUs."""


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
    default: Quota = NO_LIMIT
    """Of those for whom there is no rule."""

    def find(self, username: str, gpu_type: str) -> Quota:
        """That of the most exact rule: one for this user, then one for this type, then any other."""
        fitting = [rule for rule in self.rules if rule.fits(username, gpu_type)]
        exact = max(
            fitting, key=lambda rule: (rule.user != EVERYTHING, rule.gpu_type != EVERYTHING), default=None
        )
        return exact.quota if exact else self.default


@dataclass(frozen=True, slots=True)
class Use:
    """What a user has of a type already."""

    gpus: int = 0
    """Of reservations that run or start."""
    waiting: int = 0
    reserved_gpu_hours: float = 0.0
    """Of waiting requests, and what running ones have left."""
    gpu_hours: float = 0.0
    """Used within the period, and reserved."""
    long_gpus: int = 0
    """Of reservations that run for longer than `LONG` from now on."""


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """What a user may have of a type, and has."""

    gpu_type: str
    quota: Quota
    use: Use
    long_limit: int | None = None
    """The GPUs that the long share is now."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The part of a request that quotas count."""

    gpu_type: str
    slots: int
    duration: timedelta

    @property
    def gpu_hours(self) -> float:
        return self.slots * (self.duration / _HOUR)


def find_long_limit(quota: Quota, slots: int, nodes: int) -> int | None:
    """How many of a type's slots may be held for long: where there are few nodes, as many as one has."""
    if quota.long_share is None or nodes < quota.long_share_nodes:
        return None
    return max(math.ceil(slots / nodes), math.floor(quota.long_share * slots + _ROUNDING))


def make_limit(long_slots: int, policy: TimePolicy) -> Limit:
    """What starts now and is no longer than `LONG` does not count: its start and its grace included."""
    return Limit(long_slots, tail=count_steps(LONG, policy) + 1)


def count_slots(reservation: Reservation) -> int:
    """On all nodes together; a CPU reservation takes one."""
    return max(1, reservation.spec.gpu_count)


def asked_of(reservation: Reservation) -> Asked:
    return Asked(reservation.spec.gpu_type, count_slots(reservation), reservation.spec.duration)


def check_quota(asked: Asked, quota: Quota, use: Use) -> None:
    """Reject a request that exceeds the quota of its user, with the limit, what is used and what to do."""
    _check_gpus(asked, quota)
    _check_waiting(asked, quota, use)
    _check_reserved(asked, quota, use)
    _check_period(asked, quota, use)


def _check_gpus(asked: Asked, quota: Quota) -> None:
    if quota.gpus is not None and asked.slots > quota.gpus:
        raise QuotaExceeded("gpus_over_quota", gpus=asked.slots, gpu_type=asked.gpu_type, limit=quota.gpus)


def _check_waiting(asked: Asked, quota: Quota, use: Use) -> None:
    if quota.waiting is not None and use.waiting >= quota.waiting:
        raise QuotaExceeded(
            "waiting_over_quota", waiting=use.waiting, gpu_type=asked.gpu_type, limit=quota.waiting
        )


def _check_reserved(asked: Asked, quota: Quota, use: Use) -> None:
    limit, used = quota.reserved_gpu_hours, use.reserved_gpu_hours
    if limit is not None and used + asked.gpu_hours > limit:
        raise QuotaExceeded(
            "reserved_gpu_hours_over_quota",
            gpu_hours=asked.gpu_hours,
            gpu_type=asked.gpu_type,
            used=used,
            limit=limit,
            most_hours=_find_most_hours(asked, limit - used),
        )


def _check_period(asked: Asked, quota: Quota, use: Use) -> None:
    limit, used = quota.gpu_hours, use.gpu_hours
    if limit is not None and used + asked.gpu_hours > limit:
        raise QuotaExceeded(
            "gpu_hours_over_quota",
            gpu_hours=asked.gpu_hours,
            gpu_type=asked.gpu_type,
            used=used,
            limit=limit,
            days=quota.period / _DAY,
            most_hours=_find_most_hours(asked, limit - used),
        )


def _find_most_hours(asked: Asked, left: float) -> float | None:
    """How long so many GPUs can be had; None where less is left than the shortest reservation needs."""
    hours = left / asked.slots
    return hours if hours >= _SHORTEST_HOURS else None
