"""A dev server as the rules see it: what is asked of a cluster, and what a cluster shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from gpudev.domain.catalogue import Share
from gpudev.domain.disk import VolumeId
from gpudev.domain.names import NodeName, ReservationId, server_name

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
class ServerSpec:
    """Everything a backend needs to make one dev server; the same spec twice means the same server."""

    reservation_id: ReservationId
    reservation_name: str
    username: str
    node: NodeName
    gpu_type: str
    gpu_count: int
    share: Share
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
class ObservedServer:
    """What the cluster shows of one dev server.

    `uid` tells one incarnation from the next of its name; `node` is the one that its spec named.
    """

    reservation_id: ReservationId
    uid: str
    node: NodeName
    phase: ServerPhase
    address: SshAddress | None = None
    host_keys: tuple[str, ...] = ()
    """Public host keys as `<algorithm> <base64>`."""
    detail: str = ""
