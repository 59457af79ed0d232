"""The open connections of one process: how many there may be, for whom, and for how long they may be silent.

A connection is charged to an address until a key is known, then to the key's user. When an owner, or the
process, has too many, the oldest connection that is not being served is closed to make room: connections that
somebody holds without asking anything never keep others out. Only when all of them are being served is a new
one rejected.

This module knows neither sockets nor HTTP; whoever has a connection reports what it is doing.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from gpudev.domain.errors import TooManyRequests

_ABSENT = object()
NOBODY = None
"""Owner of a connection that only the total counts: one from a trusted proxy between two requests."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Counts are per process, times in seconds."""

    total: int
    per_address: int
    per_user: int
    head_seconds: float
    """From the first moment of a connection, or the first byte of a request, to the end of its headers."""
    request_seconds: float
    """From there to the end of the answer. With a good key an answer may take as long as it likes."""
    idle_seconds: float
    """Between two requests."""


class Phase(Enum):
    HEAD = "head"
    """New, or within the headers of a request."""
    IDLE = "idle"
    """Between two requests."""
    REQUEST = "request"
    """A request is being served, and no good key is known."""
    AUTHENTICATED = "authenticated"
    """A request with a good key is being served."""


class Connection:
    """One connection, as far as it is counted. Subclass it, or put it next to the real one."""

    __slots__ = ("drop", "owner", "phase", "since")

    def __init__(self, drop: Callable[[], None], owner: Hashable, since: float) -> None:
        self.drop = drop
        self.owner = owner
        self.since = since
        self.phase = Phase.HEAD


class Connections:
    """Those of one process that share one budget."""

    def __init__(self, limits: ConnectionLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._by_phase: dict[Phase, OrderedDict[Connection, object]] = {
            phase: OrderedDict() for phase in Phase
        }
        """In each phase those that came to it first are first."""
        self._counts: Counter[Hashable] = Counter()

    def __len__(self) -> int:
        return sum(map(len, self._by_phase.values()))

    def open(self, drop: Callable[[], None], owner: Hashable) -> Connection | None:
        """A new one, charged to this owner; None if there is no room. `drop` closes it at once."""
        if len(self) >= self._limits.total and not self._make_room(lambda _: True):
            return None
        if not self._has_room(owner, self._limits.per_address):
            return None
        connection = Connection(drop, owner, self._clock())
        self._by_phase[Phase.HEAD][connection] = None
        self._counts[owner] += 1
        return connection

    def close(self, connection: Connection) -> None:
        """It is gone. May be told twice."""
        if self._by_phase[connection.phase].pop(connection, _ABSENT) is not _ABSENT:
            self._discharge(connection)

    def move(self, connection: Connection, phase: Phase) -> None:
        """It is in this phase from now on. One that was dropped stays so."""
        if self._by_phase[connection.phase].pop(connection, _ABSENT) is not _ABSENT:
            connection.phase = phase
            connection.since = self._clock()
            self._by_phase[phase][connection] = None

    def begin_request(self, connection: Connection, owner: Hashable) -> bool:
        """Its headers are complete; False if the address they came from has too many already."""
        self.move(connection, Phase.REQUEST)
        if owner in {connection.owner, NOBODY}:
            return True
        has_room = self._has_room(owner, self._limits.per_address)
        if has_room:
            self._charge(connection, owner)
        return has_room

    def claim(self, connection: Connection, user: Hashable) -> None:
        """The request that is being served carries a good key of this user."""
        if connection.owner != user:
            if not self._has_room(user, self._limits.per_user):
                raise TooManyRequests(
                    "too_many_connections",
                    most=self._limits.per_user,
                    retry_after=timedelta(seconds=1),
                    code="too_many_connections",
                )
            self._charge(connection, user)
        self.move(connection, Phase.AUTHENTICATED)

    def release(self, connection: Connection) -> None:
        """Charge it to nobody: the next request may be somebody else's."""
        self._charge(connection, NOBODY)

    def drop_overdue(self) -> None:
        """Close what has been silent for too long. Call it about once a second."""
        limits = self._limits
        patience = {
            Phase.HEAD: limits.head_seconds,
            Phase.IDLE: limits.idle_seconds,
            Phase.REQUEST: limits.request_seconds,
        }
        now = self._clock()
        for phase, seconds in patience.items():
            for connection in tuple(_until(self._by_phase[phase], now - seconds)):
                self._drop(connection)

    def _has_room(self, owner: Hashable, limit: int) -> bool:
        if owner is NOBODY or self._counts[owner] < limit:
            return True
        return self._make_room(lambda connection: connection.owner == owner)

    def _make_room(self, is_candidate: Callable[[Connection], bool]) -> bool:
        """Drop the oldest that is not being served: those that never asked for anything first."""
        for phase in (Phase.HEAD, Phase.IDLE):
            found = next(filter(is_candidate, self._by_phase[phase]), None)
            if found is not None:
                self._drop(found)
                return True
        return False

    def _drop(self, connection: Connection) -> None:
        self.close(connection)
        connection.drop()

    def _charge(self, connection: Connection, owner: Hashable) -> None:
        self._discharge(connection)
        connection.owner = owner
        self._counts[owner] += 1

    def _discharge(self, connection: Connection) -> None:
        self._counts[connection.owner] -= 1
        if not self._counts[connection.owner]:
            del self._counts[connection.owner]


def _until(connections: OrderedDict[Connection, object], moment: float) -> Iterator[Connection]:
    for connection in connections:
        if connection.since > moment:
            return
        yield connection
