"""What is done about a server that nobody uses: it is warned, let off again, or ended as by the clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from gpudev.domain.idle import Idleness, IdlePolicy, weigh
from gpudev.domain.notices import tell_of_idleness
from gpudev.domain.plans.actions import LookAgain, Record
from gpudev.domain.reservation import Event, Reservation
from gpudev.texts.fact import Fact, fact
from gpudev.texts.vocabulary import EventKind


def is_given_up(reservation: Reservation, now: datetime, policy: IdlePolicy) -> bool:
    """It was warned, nobody came, and the countdown is over."""
    end_at = weigh(reservation, now, policy).end_at
    return end_at is not None and now >= end_at


def plan_idleness(
    reservation: Reservation, now: datetime, policy: IdlePolicy
) -> tuple[Record | LookAgain, ...]:
    state = weigh(reservation, now, policy)
    if state.is_warning_over:
        after = _with_warning(reservation, None, None)
        return (
            Record(reservation, after, Event(EventKind.IDLE_OVER, _tell_why_over(reservation, now), now)),
        )
    if state.warn_at is not None and now >= state.warn_at:
        warning = tell_of_idleness(reservation, now + policy.countdown)
        after = _with_warning(reservation, now, warning)
        return (Record(reservation, after, Event(EventKind.IDLE_WARNED, warning, now)),)
    return tuple(LookAgain(moment) for moment in _list_moments(state))


def _with_warning(reservation: Reservation, at: datetime | None, warning: Fact | None) -> Reservation:
    return replace(reservation, memory=replace(reservation.memory, idle_warned_at=at, idle_warning=warning))


def _list_moments(state: Idleness) -> list[datetime]:
    return [moment for moment in (state.warn_at, state.end_at) if moment is not None]


def _tell_why_over(reservation: Reservation, now: datetime) -> Fact:
    kept_until, idle_since, warned_at = (
        reservation.memory.kept_until,
        reservation.activity.idle_since,
        reservation.memory.idle_warned_at,
    )
    if kept_until is not None and kept_until > now:
        return fact("idle_over_kept", until=kept_until)
    if idle_since is None:
        return fact("idle_over_used", signals=reservation.activity.signals)
    if warned_at is not None and idle_since > warned_at:
        return fact("idle_over_was_used", until=idle_since)
    return fact("idle_over_unknown")
