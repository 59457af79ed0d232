"""What the people on a running dev server are to be told: recorded first, then told until it is heard."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from gpudev.domain import expiry
from gpudev.domain.notices import list_notices, tell_of_end, tell_of_oom
from gpudev.domain.plans.actions import LookAgain, Note, Record, Tell
from gpudev.domain.plans.observation import Observation, Plan
from gpudev.domain.reservation import Event, Reservation
from gpudev.domain.server import ObservedServer, ServerPhase
from gpudev.texts.vocabulary import EventKind


def plan_warnings(
    reservation: Reservation, server: ObservedServer | None, now: datetime
) -> tuple[Record, ...]:
    """What there is to say that was not said yet."""
    if server is not None and server.oom_kills > reservation.memory.oom_count:
        return (_count_oom(reservation, server, now),)
    minutes = expiry.find_due_warning(reservation, now)
    return () if minutes is None else (_warning(reservation, minutes, now),)


def plan_telling(seen: Observation) -> Plan:
    """Nothing if everybody knows what there is to know; without a server nobody can be told."""
    reservation, server = seen.reservation, seen.server
    if server is None or server.phase is not ServerPhase.READY:
        return ()
    notices = list_notices(reservation)
    facts = tuple(notice.fact for notice in notices)
    if facts == reservation.memory.told_notices:
        return ()
    if seen.told_at is not None:
        return (LookAgain(seen.told_at),)
    memory = replace(reservation.memory, told_notices=facts)
    return (Tell(reservation.id, server.uid, notices), Note(replace(reservation, memory=memory)))


def _warning(reservation: Reservation, minutes: int, now: datetime) -> Record:
    after = replace(reservation, memory=replace(reservation.memory, warned_minutes=minutes))
    return Record(reservation, after, Event(EventKind.WARNED, tell_of_end(after, minutes), now))


def _count_oom(reservation: Reservation, server: ObservedServer, now: datetime) -> Record:
    last = server.last_oom_at or now
    memory = replace(reservation.memory, oom_count=server.oom_kills, last_oom_at=last)
    after = replace(reservation, memory=memory)
    return Record(
        reservation, after, Event(EventKind.OUT_OF_MEMORY, tell_of_oom(server.oom_kills, last), now)
    )
