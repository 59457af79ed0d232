"""What the people on a dev server should know now, as it stands in their home and is shown on terminals.

A notice is a file of its name with one line of text. Which notices stand follows from the reservation
alone, so that any process can bring them about and nobody has to remember which one began.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime

from gpudev.domain.audit import make_printable
from gpudev.domain.extension import tell_how_to_extend
from gpudev.domain.reservation import Reservation

NOTICE_FILE = re.compile(
    r"WARN_EXPIRES_IN_[0-9]+MIN\.txt|WARN_IDLE\.txt|WARN_NODE_LEAVES\.txt|OOM_DETECTED\.txt"
)
"""The names that are ours in a home; a file of such a name that does not stand any more is removed."""


@dataclass(frozen=True, slots=True)
class Notice:
    file_name: str
    text: str

    @property
    def key(self) -> str:
        """By which it is remembered that it was told; another text is another notice."""
        return f"{self.file_name}: {self.text}"


def list_notices(reservation: Reservation) -> tuple[Notice, ...]:
    """Those that stand on the server of an active reservation."""
    found = (
        _expiry_notice(reservation),
        _idle_notice(reservation),
        _drain_notice(reservation),
        _oom_notice(reservation),
    )
    return tuple(replace(notice, text=make_printable(notice.text)) for notice in found if notice is not None)


def tell_of_end(reservation: Reservation, minutes: int) -> str:
    """The words of a warning: the same on terminals, in the file, in the event and to the notifier."""
    more = (
        "Its node is being taken out of service, so it cannot be extended."
        if reservation.memory.drain_warning
        else f"For more time: {tell_how_to_extend(reservation)}"
    )
    return (
        f"Reservation {reservation.spec.name} ({reservation.id8}) ends in {minutes} minutes, "
        f"at {reservation.state.expires_at:%Y-%m-%d %H:%M:%S} UTC. {more}"
    )


def _expiry_notice(reservation: Reservation) -> Notice | None:
    minutes = reservation.memory.warned_minutes
    if minutes is None or reservation.state.expires_at is None:
        return None
    return Notice(f"WARN_EXPIRES_IN_{minutes}MIN.txt", tell_of_end(reservation, minutes))


def tell_of_idleness(reservation: Reservation, ends_at: datetime) -> str:
    """Which signals decide, until when, and what to do about it."""
    return (
        f"Nobody uses reservation {reservation.spec.name} ({reservation.id8}): "
        f"{reservation.activity.idle_words}. "
        f"It ends at {ends_at:%Y-%m-%d %H:%M:%S} UTC unless it is used again. "
        f"To keep it: gpu-dev keep {reservation.id8} 2h --reason WHY"
    )


def _idle_notice(reservation: Reservation) -> Notice | None:
    """In the words of the warning: the figures go on changing, and nobody wants to be told each time."""
    if reservation.memory.idle_warned_at is None:
        return None
    return Notice("WARN_IDLE.txt", reservation.memory.idle_warning)


def _drain_notice(reservation: Reservation) -> Notice | None:
    words = reservation.memory.drain_warning
    return Notice("WARN_NODE_LEAVES.txt", words) if words else None


def _oom_notice(reservation: Reservation) -> Notice | None:
    if reservation.memory.oom_count == 0 or reservation.memory.last_oom_at is None:
        return None
    return Notice("OOM_DETECTED.txt", tell_of_oom(reservation))


def tell_of_oom(reservation: Reservation) -> str:
    times = "once" if reservation.memory.oom_count == 1 else f"{reservation.memory.oom_count} times"
    return (
        f"Something on this server was ended for want of memory, {times} so far, "
        f"last at {reservation.memory.last_oom_at:%Y-%m-%d %H:%M:%S} UTC."
    )
