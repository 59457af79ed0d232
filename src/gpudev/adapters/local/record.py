"""What is written down of one dev server, and how it is spelled in JSON.

The record is the wish, the part that a pod object plays in a cluster: processes are made to follow it,
and it outlives every one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from gpudev.adapters.local.nodes.gpu import LocalGpu
from gpudev.adapters.local.processes.identity import ProcessIdentity
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.domain.catalogue import Share
from gpudev.domain.names import NodeName, ReservationId, id8
from gpudev.domain.server import HomeVolume, ServerSpec

_SPEC_AS_IT_IS = ("reservation_id", "reservation_name", "username", "node", "gpu_type", "gpu_count")


@dataclass(frozen=True, slots=True)
class Record:
    """One dev server as it is wanted. `uid` tells this incarnation from the next of its name."""

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
    detail: str = ""

    @property
    def id8(self) -> str:
        return id8(self.spec.reservation_id)


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
        }
    )


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
        node=NodeName(value["node"]),
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
