"""A dev server as the rules see it: what is asked of a cluster, and what a cluster shows.

A dev server has one member on each of its nodes: one for most, several for a gang. A member's rank is its
place among them, and rank 0 speaks for the whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from gpudev.domain.catalogue import Share
from gpudev.domain.disk import VolumeId
from gpudev.domain.names import NodeName, ReservationId, member_name, server_name

LOGIN = "dev"
"""The user one logs in as, on every backend."""


@dataclass(frozen=True, slots=True)
class SshAddress:
    host: str
    port: int

    @property
    def command(self) -> str:
        return f"ssh -p {self.port} {LOGIN}@{self.host}"


@dataclass(frozen=True, slots=True)
class HomeVolume:
    """The disk that is mounted as the home."""

    volume_id: VolumeId
    disk_name: str
    size_gb: int


@dataclass(frozen=True, slots=True)
class Member:
    """The part of a reservation that is on one node, and how it is reached once it answers."""

    node: NodeName
    address: SshAddress | None = None
    host_keys: tuple[str, ...] = ()
    """Public host keys as `<algorithm> <base64>`."""


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """Everything a backend needs to make one dev server; the same spec twice means the same server."""

    reservation_id: ReservationId
    reservation_name: str
    username: str
    nodes: tuple[NodeName, ...]
    """The node of each member, by rank."""
    gpu_type: str
    gpu_count: int
    """On all nodes together."""
    share: Share
    """What each member gets of its node."""
    duration: timedelta
    ssh_public_keys: tuple[str, ...] = ()
    env_vars: Mapping[str, str] = field(default_factory=dict)
    home: HomeVolume | None = None
    """None: a home of this server's own, which is not kept."""
    notice: str = ""
    """What its user should read when logging in."""

    @property
    def name(self) -> str:
        return server_name(self.reservation_id)

    @property
    def member_names(self) -> tuple[str, ...]:
        return tuple(member_name(self.reservation_id, rank) for rank in range(len(self.nodes)))

    @property
    def gpus_per_node(self) -> int:
        return self.gpu_count // len(self.nodes)

    @property
    def is_gang(self) -> bool:
        return len(self.nodes) > 1


class ServerPhase(StrEnum):
    STARTING = "starting"
    READY = "ready"
    """It answers on SSH at its address."""
    UNPLACEABLE = "unplaceable"
    """Its node had no room for it after all."""
    FAILED = "failed"
    """It cannot run; `detail` has the backend's own words."""
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class ObservedMember:
    """What the cluster shows of one member; `node` is the one that its spec named."""

    node: NodeName
    phase: ServerPhase
    rank: int = 0
    address: SshAddress | None = None
    host_keys: tuple[str, ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ObservedServer:
    """What the cluster shows of one dev server. `uid` tells one incarnation from the next of its name."""

    reservation_id: ReservationId
    uid: str
    members: tuple[ObservedMember, ...]
    """Those that are there, by rank; never none."""

    @property
    def phase(self) -> ServerPhase:
        return derive_phase([member.phase for member in self.members])

    @property
    def detail(self) -> str:
        """The words of the first member that makes the phase what it is."""
        return next((words for words in map(self._words_of, self._deciding) if words), "")

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        return tuple(member.node for member in self.members)

    @property
    def address(self) -> SshAddress | None:
        return self.members[0].address

    @property
    def host_keys(self) -> tuple[str, ...]:
        return self.members[0].host_keys

    @property
    def _deciding(self) -> tuple[ObservedMember, ...]:
        return tuple(member for member in self.members if member.phase is self.phase)

    def _words_of(self, member: ObservedMember) -> str:
        """In a gang a member is named."""
        if not member.detail or not self._is_gang:
            return member.detail
        return f"{member_name(self.reservation_id, member.rank)} on {member.node}: {member.detail}"

    @property
    def _is_gang(self) -> bool:
        return len(self.members) > 1 or self.members[0].rank > 0


def derive_phase(phases: Sequence[ServerPhase]) -> ServerPhase:
    """The phase of the whole: as bad as its worst member, and READY or STOPPING only if all are."""
    for worst in (ServerPhase.FAILED, ServerPhase.UNPLACEABLE):
        if worst in phases:
            return worst
    for shared in (ServerPhase.READY, ServerPhase.STOPPING):
        if all(phase is shared for phase in phases):
            return shared
    return ServerPhase.STARTING
