"""Everything that the HTTP service can ask for, in one value: the use cases, by noun."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network
from typing import Protocol

from gpudev.app.disks import DiskUseCases
from gpudev.app.identity import IdentityUseCases
from gpudev.app.nodes import GpuTypeUseCases, NodeUseCases
from gpudev.app.notifications import NotificationUseCases
from gpudev.app.reports import ReportUseCases
from gpudev.app.reservations import ReservationUseCases
from gpudev.app.service import ServiceUseCases
from gpudev.domain.catalogue import Catalogue

TrustedProxies = tuple[IPv4Network | IPv6Network, ...]


class BackgroundTask(Protocol):
    async def run(self) -> None:
        """Until cancelled."""
        ...


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """What users can be told of this cluster without a look at the database."""

    catalogue: Catalogue
    simulated_types: frozenset[str] = frozenset()
    """The GPU types of which there are no real GPUs here."""
    backend_fields: frozenset[str] = frozenset()
    """Fields of a submit that not every kind of cluster can do, and this one can."""
    ssh_proxy_url: str | None = None
    """By which clients reach dev servers; None: at their own addresses."""
    notices: tuple[str, ...] = ()
    """What users should know of this cluster."""


@dataclass(frozen=True, slots=True)
class Application:
    reservations: ReservationUseCases
    disks: DiskUseCases
    nodes: NodeUseCases
    gpu_types: GpuTypeUseCases
    identity: IdentityUseCases
    notifications: NotificationUseCases
    reports: ReportUseCases
    service: ServiceUseCases
    cluster: ClusterInfo
    now: Callable[[], datetime]
    background: tuple[BackgroundTask, ...] = ()
    """What runs beside the routes for as long as they are served."""
    trusted_proxies: TrustedProxies = ()
    """Whose word on where a request came from is taken."""
