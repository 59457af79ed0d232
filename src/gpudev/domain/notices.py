"""What the people on a dev server should know now, as it stands in their home and is shown on terminals.

A notice is a file of its name with one line of text. Which notices stand follows from the reservation
alone, so that any process can bring them about and nobody has to remember which one began.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from gpudev.domain.audit import make_printable
from gpudev.domain.reservation import Reservation
from gpudev.texts.fact import Fact, Value, fact
from gpudev.texts.sentences import say
from gpudev.texts.zones import zone_or_utc

NOTICE_FILE = re.compile(
    r"WARN_EXPIRES_IN_[0-9]+MIN\.txt|WARN_IDLE\.txt|WARN_NODE_LEAVES\.txt|OOM_DETECTED\.txt"
)
"""The names that are ours in a home; a file of such a name that does not stand any more is removed."""


@dataclass(frozen=True, slots=True)
class Notice:
    file_name: str
    fact: Fact
    time_zone: str = ""
    """Of the reader; empty: UTC."""

    @property
    def text(self) -> str:
        """One line for files and terminals."""
        return make_printable(say(self.fact, zone_or_utc(self.time_zone)))


def list_notices(reservation: Reservation) -> tuple[Notice, ...]:
    """Those that stand on the server of an active reservation."""
    memory, zone = reservation.memory, reservation.settings.time_zone
    minutes = memory.warned_minutes
    found = (
        (f"WARN_EXPIRES_IN_{minutes}MIN.txt", _find_end(reservation)),
        # As it was when it was warned: the figures go on changing, and nobody wants to be told each time.
        ("WARN_IDLE.txt", memory.idle_warning if memory.idle_warned_at is not None else None),
        ("WARN_NODE_LEAVES.txt", memory.drain_warning),
        ("OOM_DETECTED.txt", _find_oom(reservation)),
    )
    return tuple(Notice(file_name, told, zone) for file_name, told in found if told is not None)


def tell_of_end(reservation: Reservation, minutes: int) -> Fact:
    """A warning: the same on terminals, in the file, in the event and to the notifier."""
    known: dict[str, Value] = {
        "name": reservation.spec.name,
        "reservation": reservation.id,
        "minutes": minutes,
        "end": reservation.state.expires_at,
    }
    if reservation.memory.drain_warning is not None:
        return fact("ends_soon_with_its_node", **known)
    return fact("ends_soon", **known)


def tell_of_idleness(reservation: Reservation, ends_at: datetime) -> Fact:
    """Which signals decide, until when, and what to do about it."""
    return fact(
        "idle_warning",
        name=reservation.spec.name,
        reservation=reservation.id,
        signals=reservation.activity.signals,
        end=ends_at,
    )


def tell_of_oom(count: int, last_at: datetime) -> Fact:
    return fact("out_of_memory", count=count, at=last_at)


def _find_oom(reservation: Reservation) -> Fact | None:
    memory = reservation.memory
    if memory.oom_count == 0 or memory.last_oom_at is None:
        return None
    return tell_of_oom(memory.oom_count, memory.last_oom_at)


def _find_end(reservation: Reservation) -> Fact | None:
    minutes = reservation.memory.warned_minutes
    if minutes is None or reservation.state.expires_at is None:
        return None
    return tell_of_end(reservation, minutes)
