"""The machines that dev servers run on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from gpudev.domain.capacity import Node
from gpudev.domain.names import ReservationId
from gpudev.domain.server import ObservedServer, ServerSpec


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the cluster looks like. Every server in `servers` is accounted for in the nodes' free slots."""

    nodes: tuple[Node, ...]
    servers: Mapping[ReservationId, ObservedServer]


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

    async def find_server(self, reservation_id: ReservationId) -> ObservedServer | None:
        """A fresh read of one server, past any cache; None only if the cluster says that there is none.

        A member that is not in the answer is gone, by the cluster's own word.
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

        A server of the same name with another uid is left alone. The homes stay.
        """
        ...

    def changes(self) -> AsyncIterator[ClusterChange]:
        """Hints, live, from the moment of the call. Losing one delays and never breaks anything."""
        ...
