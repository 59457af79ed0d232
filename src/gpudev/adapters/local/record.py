"""What is written down of one member of a dev server, and how it is spelled in JSON.

Most dev servers have one member, and are what is written down of it.

The record is the wish, the part that a pod object plays in a cluster: processes are made to follow it,
and it outlives every one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from gpudev.adapters.local.gpus import LocalGpu
from gpudev.adapters.local.processes.identity import ProcessIdentity
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.domain.catalogue import Share
from gpudev.domain.names import NodeName, ReservationId, id8
from gpudev.domain.server import HomeVolume, ServerSpec
from gpudev.texts.fact import Fact, fact, parse_fact

_SPEC_AS_IT_IS = ("reservation_id", "reservation_name", "username", "nodes", "gpu_type", "gpu_count")


@dataclass(frozen=True, slots=True)
class GangHost:
    """A member as the others know it."""

    name: str
    port: int
    public_host_key: str


@dataclass(frozen=True, slots=True)
class Gang:
    """What every member of a gang has, so that each can log in to each."""

    private_key: str
    """In OpenSSH's format."""
    public_key: str
    hosts: tuple[GangHost, ...]
    """All members, by rank."""


@dataclass(frozen=True, slots=True)
class Record:
    """One member as it is wanted. `uid` tells this incarnation of the whole from the next of its name."""

    spec: ServerSpec
    uid: str
    is_placed: bool
    """False if its node had no room: nothing runs and nothing is taken."""
    gpus: tuple[LocalGpu, ...] = ()
    port: int = 0
    host_key: str = ""
    """The private key, in OpenSSH's format."""
    public_host_key: str = ""
    """As `<algorithm> <base64>`."""
    has_answered: bool = False
    """It was READY once, so from now on it is started again however often that fails."""
    is_leaving: bool = False
    """Its deletion has begun and will be finished by whoever owns the state directory."""
    detail: Fact | None = None
    """Why it was not placed."""
    rank: int = 0
    gang: Gang | None = None
    """For a member of a gang. Once it has answered it is not started again: the gang has ended by then."""

    @property
    def id8(self) -> str:
        return id8(self.spec.reservation_id)

    @property
    def key(self) -> str:
        """What its files are called."""
        return record_key(self.id8, self.rank)

    @property
    def name(self) -> str:
        return self.spec.member_names[self.rank]

    @property
    def node(self) -> NodeName:
        return self.spec.nodes[self.rank]

    @property
    def home(self) -> HomeVolume | None:
        """The disk is the home of rank 0; the others have none."""
        return self.spec.home if self.rank == 0 else None


def record_key(id8: str, rank: int) -> str:
    return f"{id8}-{rank}" if rank else id8


@dataclass(frozen=True, slots=True)
class ServerProcesses:
    """The processes by which a dev server is known, as seen from outside it."""

    root: ProcessIdentity
    """Ending it ends everything in the server: the sandbox's first process, or the keeper."""
    ssh_server: ProcessIdentity
    isolation: Isolation


def record_to_json(record: Record) -> dict[str, Any]:
    return {**asdict(record), "spec": _spec_to_json(record.spec)}


def record_from_json(value: Mapping[str, Any]) -> Record:
    return Record(
        **{
            **value,
            "spec": _spec_from_json(value["spec"]),
            "gpus": tuple(
                LocalGpu(gpu["visible_name"], tuple(gpu["device_paths"]), gpu["is_simulated"])
                for gpu in value["gpus"]
            ),
            "detail": _detail_from_json(value["detail"]),
            "gang": _gang_from_json(value["gang"]) if value["gang"] else None,
        }
    )


def _detail_from_json(value: Mapping[str, Any] | str | None) -> Fact | None:
    """Records of an earlier version have words."""
    if isinstance(value, str):
        return fact("words", words=value) if value else None
    return parse_fact(value) if value is not None else None


def _gang_from_json(value: Mapping[str, Any]) -> Gang:
    hosts = tuple(GangHost(**host) for host in value["hosts"])
    return Gang(value["private_key"], value["public_key"], hosts)


def processes_to_json(processes: ServerProcesses) -> dict[str, Any]:
    return asdict(processes)


def processes_from_json(value: Mapping[str, Any]) -> ServerProcesses:
    return ServerProcesses(
        root=ProcessIdentity(**value["root"]),
        ssh_server=ProcessIdentity(**value["ssh_server"]),
        isolation=Isolation(value["isolation"]),
    )


def _spec_to_json(spec: ServerSpec) -> dict[str, Any]:
    return {
        **{name: getattr(spec, name) for name in _SPEC_AS_IT_IS},
        "share": asdict(spec.share),
        "duration_seconds": spec.duration.total_seconds(),
        "ssh_public_keys": list(spec.ssh_public_keys),
        "env_vars": dict(spec.env_vars),
        "home": asdict(spec.home) if spec.home else None,
        "notice": spec.notice,
    }


def _spec_from_json(value: Mapping[str, Any]) -> ServerSpec:
    return ServerSpec(
        reservation_id=ReservationId(value["reservation_id"]),
        reservation_name=value["reservation_name"],
        username=value["username"],
        nodes=tuple(NodeName(node) for node in value["nodes"]),
        gpu_type=value["gpu_type"],
        gpu_count=value["gpu_count"],
        share=Share(**value["share"]),
        duration=timedelta(seconds=value["duration_seconds"]),
        ssh_public_keys=tuple(value["ssh_public_keys"]),
        env_vars=value["env_vars"],
        # Records of an earlier version have neither.
        home=HomeVolume(**home) if (home := value.get("home")) else None,
        notice=value.get("notice", ""),
    )
