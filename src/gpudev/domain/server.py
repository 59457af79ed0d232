"""A dev server as the rules see it: what is asked of a cluster, and what a cluster shows.

A dev server has one member on each of its nodes: one for most, several for a gang. A member's rank is its
place among them, and rank 0 speaks for the whole. Its environment variables are the same wherever it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from gpudev.domain.catalogue import Amount, Share
from gpudev.domain.disk import VolumeId
from gpudev.domain.names import NodeName, ReservationId, member_name, server_name
from gpudev.texts.fact import Fact, fact

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
    zone: str = ""


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
    image: str = ""
    """An image of the user's own; empty: the standard one of the type."""
    port_slot: str = ""
    """The ready address that was given to it at its placement; empty: the backend makes one."""
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
    CRASHING = "crashing"
    """It ends again and again, and is started each time; `detail` says how it ended."""
    FAILED = "failed"
    """It cannot run; `detail` has the backend's own words, and `cause` says whose fault it is."""
    STOPPING = "stopping"


_WITHOUT_ROOM = frozenset({ServerPhase.UNPLACEABLE, ServerPhase.FAILED})


class Cause(StrEnum):
    """Why a server failed, where the backend can tell."""

    IMAGE = "image"
    """Its image is not to be had."""
    NODE_LOST = "node_lost"
    """The machine that it ran on is gone."""
    EVICTED = "evicted"
    """Its node threw it out: it took more disk or memory than there was."""
    OUT_OF_MEMORY = "out_of_memory"


@dataclass(frozen=True, slots=True)
class ObservedMember:
    """What the cluster shows of one member; `node` is the one that its spec named."""

    node: NodeName
    phase: ServerPhase
    rank: int = 0
    address: SshAddress | None = None
    host_keys: tuple[str, ...] = ()
    detail: Fact | None = None
    progress: Fact | None = None
    """What somebody who waits for it should know: that its image is being fetched, say."""
    cause: Cause | None = None
    warning: Fact | None = None
    """What the user of a running server should know: its node is silent, it ran out of memory."""


@dataclass(frozen=True, slots=True)
class ObservedServer:
    """What the cluster shows of one dev server. `uid` tells one incarnation from the next of its name."""

    reservation_id: ReservationId
    uid: str
    members: tuple[ObservedMember, ...]
    """Those that are there, by rank; never none."""
    oom_kills: int = 0
    """How often something in this incarnation was ended for want of memory, as far as the cluster tells."""
    last_oom_at: datetime | None = None

    @property
    def phase(self) -> ServerPhase:
        return derive_phase([member.phase for member in self.members])

    @property
    def takes_room(self) -> bool:
        """Whether a member of it holds GPUs that somebody else could have."""
        return any(member.phase not in _WITHOUT_ROOM for member in self.members)

    @property
    def detail(self) -> Fact | None:
        """Of the first member that makes the phase what it is."""
        return self._find_first((member, member.detail) for member in self._deciding)

    @property
    def progress(self) -> Fact | None:
        return self._find_first((member, member.progress) for member in self.members)

    @property
    def warning(self) -> Fact | None:
        return self._find_first((member, member.warning) for member in self.members)

    @property
    def cause(self) -> Cause | None:
        return next((member.cause for member in self._deciding if member.cause), None)

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

    def _find_first(self, told: Iterable[tuple[ObservedMember, Fact | None]]) -> Fact | None:
        """In a gang a member is named."""
        for member, what in told:
            if what is not None:
                name = member_name(self.reservation_id, member.rank)
                of_gang = fact("member_told", member=name, node=member.node, what=what)
                return of_gang if self._is_gang else what
        return None

    @property
    def _is_gang(self) -> bool:
        return len(self.members) > 1 or self.members[0].rank > 0


def derive_phase(phases: Sequence[ServerPhase]) -> ServerPhase:
    """The phase of the whole: as bad as its worst member, and READY or STOPPING only if all are."""
    for worst in (ServerPhase.FAILED, ServerPhase.UNPLACEABLE, ServerPhase.CRASHING):
        if worst in phases:
            return worst
    for shared in (ServerPhase.READY, ServerPhase.STOPPING):
        if all(phase is shared for phase in phases):
            return shared
    return ServerPhase.STARTING


NO_GPUS = "void"
"""For `NVIDIA_VISIBLE_DEVICES`: images of NVIDIA say "all" themselves, and nothing at all means that, too."""
DRIVER_CAPABILITIES = {"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}

_THREAD_COUNTS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
_CACHES = {
    "HF_HOME": "huggingface",
    "TORCH_HOME": "torch",
    "TRITON_CACHE_DIR": "triton",
    "TORCHINDUCTOR_CACHE_DIR": "torchinductor",
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
}


def thread_counts(cores: Amount) -> dict[str, str]:
    """As many threads as there are cores to run them: libraries that count the machine's take too many."""
    return dict.fromkeys(_THREAD_COUNTS, str(max(1, int(cores))))


def cache_folders(workspace: str) -> dict[str, str]:
    """Caches that grow big go to the workspace, away from the home that is kept."""
    return {name: f"{workspace}/.cache/{folder}" for name, folder in _CACHES.items()}


def reservation_variables(spec: ServerSpec, node: NodeName) -> dict[str, str]:
    """Whose server it is; nothing given by the user can replace these."""
    return {
        "GPU_DEV_RESERVATION_ID": spec.reservation_id,
        "GPU_DEV_RESERVATION_NAME": spec.reservation_name,
        "GPU_DEV_USER": spec.username,
        "GPU_DEV_GPU_TYPE": spec.gpu_type,
        "GPU_DEV_GPU_COUNT": str(spec.gpus_per_node),
        "GPU_DEV_NODE": node,
    }
