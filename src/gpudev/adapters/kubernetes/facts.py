"""What we keep of each object of the cluster: the few facts that anything is decided by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from gpudev.adapters.kubernetes.pod_status import PodStatus
from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.server import ServerPhase
from gpudev.texts.fact import Fact


@dataclass(frozen=True, slots=True)
class NodeFacts:
    name: NodeName
    gpu_type: str = ""
    """Empty for a node that no dev server goes to."""
    slots: int = 0
    is_ready: bool = True
    silent_since: datetime | None = None
    is_schedulable: bool = True
    address: str = ""
    is_profiling: bool = False
    is_simulated: bool = False
    zone: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    storage_gib: int = 0
    """Local disk that pods may have; 0 where the node does not report it."""
    has_user_namespaces: bool = False
    """Its runtime and its kernel can give a pod users of its own."""


@dataclass(frozen=True, slots=True)
class MemberFacts:
    """Which member of which dev server one of our pods is, and how users reach it."""

    rank: int = 0
    incarnation: str = ""
    """Of the gang that it is a member of; empty for a server of one pod."""
    service: str = ""
    host_key: str = ""


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """How often the container of one of our pods was started, and how it ended before."""

    restarts: int = 0
    is_probed_ready: bool = False
    last_end: Fact | None = None
    """How the container ended before it was started again; None if it never did."""
    oom_kills: int = 0
    """How often the container had ended when it last ran out of memory; 0 if its last end was another."""
    last_oom_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PodFacts:
    """A pod of anybody's, as far as it takes room; the rest is known of our own only."""

    key: str
    """Namespace and name."""
    name: str
    uid: str
    node: NodeName | None
    """Where it is, or where it is to be."""
    is_bound: bool
    takes_room: bool
    """It has not ended: what it asked for is counted."""
    requests: Mapping[str, int] = field(default_factory=dict)
    """So many of each countable thing: GPUs and their slices."""
    slots: int = 0
    """How much of a CPU node it takes."""
    owner: ReservationId | None = None
    member: MemberFacts = field(default_factory=MemberFacts)
    container: ContainerFacts = field(default_factory=ContainerFacts)
    address: str = ""
    status: PodStatus = field(default_factory=lambda: PodStatus(ServerPhase.STARTING))
    created_at: datetime | None = None
    version: int = field(default=0, compare=False)
    """When this was so, on the cluster's own clock."""

    @property
    def server_uid(self) -> str:
        """Of the dev server that this pod is, or is a member of."""
        return self.member.incarnation or self.uid


@dataclass(frozen=True, slots=True)
class ServiceFacts:
    name: str
    uid: str
    port: int
    is_port_slot: bool
    is_leaving: bool
    owner: ReservationId | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class EventFacts:
    """The last thing that the cluster said of one of our pods."""

    pod_uid: str
    told: Fact | None
    """None for what users need not know; it still ends what was said before."""
    at: datetime | None = None
