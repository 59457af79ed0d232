"""Whether anybody uses a dev server, and what is done if nobody does.

Every signal must say "idle": one that says otherwise, or that is not known, keeps the server busy. A signal
that cannot exist on a server is not unknown, it has no say. Nobody is ended without a warning that named the
signals and counted down, and what was measured long ago is not known any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from gpudev.domain.reservation import Reservation
from gpudev.texts.fact import Fact, fact


class Signal(StrEnum):
    GPU_USE = "gpu_use"
    GPU_MEMORY = "gpu_memory"
    SSH = "ssh"
    JUPYTER = "jupyter"
    CPU = "cpu"


@dataclass(frozen=True, slots=True)
class Usage:
    """One look at a dev server. A signal that is not in `signals` is not known."""

    at: datetime
    signals: Mapping[Signal, float]
    """Percent of the GPUs and of their memory, open connections, busy CPU cores."""
    absent: frozenset[Signal] = frozenset()
    """What cannot exist there: Jupyter where it is off, GPUs on a CPU node."""
    is_simulated: bool = False
    """The figures of the GPUs are declared, not measured."""


@dataclass(frozen=True, slots=True)
class IdlePolicy:
    """When a server counts as idle; `after` is None where nobody is ended for that."""

    after: timedelta | None = None
    by_type: Mapping[str, timedelta | None] = field(default_factory=dict)
    countdown: timedelta = timedelta(minutes=15)
    known_for: timedelta = timedelta(minutes=5)
    """How long a measurement counts; after that nothing is known, and unknown is busy."""
    limits: Mapping[Signal, float] = field(
        default_factory=lambda: {
            Signal.GPU_USE: 5.0,
            Signal.GPU_MEMORY: 10.0,
            Signal.SSH: 0.0,
            Signal.JUPYTER: 0.0,
            Signal.CPU: 0.5,
        }
    )
    """What a signal may say at most and still mean "idle"."""

    def find_patience(self, gpu_type: str) -> timedelta | None:
        return self.by_type.get(gpu_type, self.after)


NEVER = IdlePolicy()


def combine(members: Sequence[Usage]) -> Usage:
    """The use of a whole server: the busiest member speaks for all, and what one does not know, none does."""
    known = [signal for signal in Signal if all(signal in usage.signals for usage in members)]
    return Usage(
        at=members[0].at,
        signals={signal: max(usage.signals[signal] for usage in members) for signal in known},
        absent=frozenset.intersection(*(usage.absent for usage in members)),
        is_simulated=any(usage.is_simulated for usage in members),
    )


@dataclass(frozen=True, slots=True)
class Verdict:
    is_idle: bool
    signals: Fact
    """With their figures, first the one that decides."""


def judge(usage: Usage, policy: IdlePolicy) -> Verdict:
    """Busy by the first signal that says so or is not known; idle if there is none."""
    asked = [signal for signal in Signal if signal not in usage.absent]
    for signal in asked:
        if signal not in usage.signals:
            return Verdict(is_idle=False, signals=fact("usage_signal_unknown", signal=signal))
        if usage.signals[signal] > policy.limits[signal]:
            others = [other for other in asked if other in usage.signals and other is not signal]
            return Verdict(is_idle=False, signals=_tell((signal, *others), usage))
    return Verdict(is_idle=True, signals=_tell(asked, usage))


def find_idle_since(before: datetime | None, usage: Usage, verdict: Verdict) -> datetime | None:
    """Since when it is idle without a break, given since when it was before this look."""
    return (before or usage.at) if verdict.is_idle else None


@dataclass(frozen=True, slots=True)
class Idleness:
    """Where an active reservation stands. Moments that do not apply are None."""

    warn_at: datetime | None = None
    end_at: datetime | None = None
    is_warning_over: bool = False
    """It was warned, and is used again or kept."""


def weigh(reservation: Reservation, now: datetime, policy: IdlePolicy) -> Idleness:
    warned_at = reservation.memory.idle_warned_at
    since = _find_believable_since(reservation, now, policy)
    patience = policy.find_patience(reservation.spec.gpu_type)
    if patience is None or since is None:
        return Idleness(is_warning_over=warned_at is not None)
    kept_until = reservation.memory.kept_until
    if kept_until is not None and kept_until > now:
        return Idleness(warn_at=max(kept_until, since + patience), is_warning_over=warned_at is not None)
    if warned_at is None:
        warn_at = max(since + patience, kept_until or since)
        return Idleness(warn_at=warn_at)
    if since > warned_at:
        return Idleness(warn_at=since + patience, is_warning_over=True)
    return Idleness(end_at=warned_at + policy.countdown)


def _find_believable_since(reservation: Reservation, now: datetime, policy: IdlePolicy) -> datetime | None:
    seen = reservation.activity.usage_at
    is_known = seen is not None and now - seen <= policy.known_for
    return reservation.activity.idle_since if is_known else None


def _tell(signals: Sequence[Signal], usage: Usage) -> Fact:
    """The figures in this order, each with whether it is declared instead of measured."""
    measured = [(signal, usage.signals[signal], _is_declared(signal, usage)) for signal in signals]
    return fact("usage_signals", signals=measured)


def _is_declared(signal: Signal, usage: Usage) -> bool:
    return usage.is_simulated and signal in {Signal.GPU_USE, Signal.GPU_MEMORY}
