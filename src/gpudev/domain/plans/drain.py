"""What the people on a dev server are told when its nodes are taken out of service, or stay after all."""

from __future__ import annotations

from dataclasses import replace

from gpudev.domain.drain import tell_of_drain, tell_of_stay
from gpudev.domain.plans.actions import Record
from gpudev.domain.plans.observation import Observation
from gpudev.domain.reservation import Event
from gpudev.texts.vocabulary import EventKind


def plan_drain(seen: Observation) -> tuple[Record, ...]:
    """Nothing if they know already. The notice that stands on the server follows from what is recorded."""
    reservation = seen.reservation
    warning = tell_of_drain(reservation, seen.drains)
    if warning == reservation.memory.drain_warning:
        return ()
    after = replace(reservation, memory=replace(reservation.memory, drain_warning=warning))
    kind = EventKind.NODE_LEAVES if warning else EventKind.NODE_STAYS
    return (Record(reservation, after, Event(kind, warning or tell_of_stay(reservation), seen.now)),)
