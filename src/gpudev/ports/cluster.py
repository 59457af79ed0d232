"""The machines that dev servers run on: the servers, what they log, and the groups of machines behind them.

`Announcements` is what an adapter needs for `Cluster.changes`: it tells any number of listeners what has
changed, and waits for none of them.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, Self

from gpudev.domain.capacity import Node
from gpudev.domain.errors import Unavailable
from gpudev.domain.idle import Usage
from gpudev.domain.job import Job
from gpudev.domain.names import ReservationId
from gpudev.domain.notices import Notice
from gpudev.domain.plans.orphans import Leftover
from gpudev.domain.scaling import ScalingGroup
from gpudev.domain.server import ObservedServer, ServerSpec
from gpudev.domain.volume import FileListing


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the cluster looks like. Every server in `servers` is accounted for in the nodes' free slots."""

    nodes: tuple[Node, ...]
    servers: Mapping[ReservationId, ObservedServer]
    port_slots: tuple[str, ...] = ()
    """Ready addresses that wait for a server, by name. Each is given at most once, by a placement."""


@dataclass(frozen=True, slots=True)
class ServerChanged:
    """Look at this reservation sooner: its server appeared, moved to another phase, or is gone."""

    reservation_id: ReservationId


@dataclass(frozen=True, slots=True)
class CapacityChanged:
    """Look at admission for this type sooner: a node came, went or has other room."""

    gpu_type: str


ClusterChange = ServerChanged | CapacityChanged


class Cluster(Protocol):
    """A cluster of nodes with GPUs, on which one dev server a reservation runs.

    A dev server has a member on each node of its spec. Most have one; the members of a gang are made, seen
    and taken down as one server, under one uid.

    Servers outlive the process that asked for them. Nothing here decides: placement, timing and ends are
    the application's. Every method raises `ClusterUnavailable` when the cluster does not answer, and an
    unanswered call is never to be read as "the server is gone".
    """

    def snapshot(self) -> Snapshot:
        """The present view, from memory: no I/O, no waiting."""
        ...

    async def find_server(self, reservation_id: ReservationId, node_count: int = 1) -> ObservedServer | None:
        """A fresh read of one server, past any cache; None only if the cluster says that there is none.

        `node_count` is how many members it may have. One that is not in the answer is gone, by the cluster's
        own word.
        """
        ...

    async def create_server(self, spec: ServerSpec) -> None:
        """Make the server of this spec, or adopt it if it exists. Idempotent, also after a crash half-way.

        When it returns, the server is in the snapshot with all of its members, in any phase. A node without
        room gives a member in phase `UNPLACEABLE`, not an error. Something else that bears the server's name
        raises `Defect`. A member is `READY` once it has answered with an SSH banner at its address. From then
        on address, host keys and home stay the same for its life, whatever is killed.

        The members of a gang log in to each other without a password, by the names in `MULTINODE_HOSTS`, and
        have the environment of `gang_environment` with `MASTER_PORT`. One that has been `READY` and ends is
        not brought back: it is `FAILED`, or gone.
        """
        ...

    async def delete_server(self, reservation_id: ReservationId, uid: str) -> None:
        """Take down this incarnation, with every process of every member. Idempotent: gone is success.

        It may return while the server is still `STOPPING`; that it is gone is a change like any other.
        A server of the same name with another uid is left alone. The homes stay.
        """
        ...

    async def tell(self, reservation_id: ReservationId, uid: str, notices: tuple[Notice, ...]) -> None:
        """Let exactly these notices stand on this incarnation, and show new ones to everybody there.

        A notice stands as a file of its name and text in the home; files with the name of a notice that are
        not among these are removed. One whose file does not say the same already is new, and its text is
        written to every open terminal, as `wall` would; a terminal that takes no output loses it. Idempotent.
        Another incarnation is left alone.
        """
        ...

    async def list_home(self, reservation_id: ReservationId, uid: str) -> FileListing | None:
        """What is in the home of this incarnation, which is a disk; it takes some seconds at most.

        None where a storage can tell that itself, and where nobody can: it does not run, or has too much.
        """
        ...

    async def find_job(self, reservation_id: ReservationId, uid: str) -> Job | None:
        """How the command of `gpu-dev submit` on this incarnation stands; some seconds at most.

        None if there is none, or where nobody can tell. Its files are its user's: nothing of them is believed
        further than `domain.job` says, nothing is followed, and little is read.
        """
        ...

    async def measure(self, reservation_id: ReservationId, uid: str, now: datetime) -> Usage | None:
        """How much this incarnation is used at this moment; None if it is not running.

        What cannot be found out is left out of the signals, and never guessed.
        """
        ...

    async def discard_port_slot(self, port_slot: str) -> None:
        """Take away a ready address, used or not, so that nobody gets it again. Gone already is success."""
        ...

    def list_leftovers(self) -> tuple[Leftover, ...]:
        """Everything, from memory, that says which reservation it belongs to; see `plans.orphans`."""
        ...

    async def remove_leftover(self, leftover: Leftover) -> None:
        """Take away this very thing. Gone already is success."""
        ...

    def changes(self) -> AsyncIterator[ClusterChange]:
        """Hints, live, from the moment of the call. Losing one delays and never breaks anything."""
        ...


class Listener:
    """One listener's pending changes. The same hint twice is one hint, so what is kept stays small."""

    def __init__(self) -> None:
        self._pending: dict[ClusterChange, None] = {}
        self._wake = asyncio.Event()
        self._is_closed = False
        self._failure: BaseException | None = None

    def tell(self, change: ClusterChange) -> None:
        self._pending[change] = None
        self._wake.set()

    def close(self, failure: BaseException | None = None) -> None:
        self._is_closed = True
        self._failure = failure
        self._wake.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ClusterChange:
        while not self._pending:
            if self._failure is not None:
                raise self._failure
            if self._is_closed:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        change = next(iter(self._pending))
        del self._pending[change]
        return change


class Announcements:
    """Listeners come by `listen` and go by being dropped."""

    def __init__(self) -> None:
        self._listeners: weakref.WeakSet[Listener] = weakref.WeakSet()

    def listen(self) -> Listener:
        listener = Listener()
        self._listeners.add(listener)
        return listener

    def tell(self, *changes: ClusterChange) -> None:
        for listener in tuple(self._listeners):
            for change in changes:
                listener.tell(change)

    def close(self, failure: BaseException | None = None) -> None:
        """Nothing will be told any more; a listener that must not go deaf unnoticed learns why."""
        for listener in tuple(self._listeners):
            listener.close(failure)


@dataclass(frozen=True, slots=True)
class LogQuery:
    tail: int | None = None
    """Only so many of the last lines; None: all there are."""
    follow: bool = False
    """Go on with what is written from now on, until the server is gone."""


class ServerLogs(Protocol):
    """The log of a dev server: its start, its SSH server, and what else its first process says."""

    def read(self, reservation_id: ReservationId, query: LogQuery) -> AsyncIterator[bytes]:
        """`NotFound` at the first step if there is no server or no log of it yet."""
        ...


class ScalingUnavailable(Unavailable):
    default_code = "scaling_unavailable"


class Scaling(Protocol):
    async def list_groups(self) -> tuple[ScalingGroup, ...]:
        """Every group, all pages of it, or `ScalingUnavailable`: never a part."""
        ...
