"""Everything that the HTTP service can ask for, in one value."""

from __future__ import annotations

from dataclasses import dataclass

from gpudev.app.aws_login import AwsLogin
from gpudev.app.cancel import Cancel
from gpudev.app.find import Find, FindOperation
from gpudev.app.follow import EventHub, Follow
from gpudev.app.login import Authenticate, LocalLogin
from gpudev.app.reserve import Reserve
from gpudev.domain.catalogue import Catalogue
from gpudev.ports.clock import Clock
from gpudev.ports.identity import Identities
from gpudev.ports.queue import MessageQueue
from gpudev.ports.store import GpuTypes, Health, Reservations


@dataclass(frozen=True, slots=True)
class Application:
    reserve: Reserve
    find: Find
    find_operation: FindOperation
    cancel: Cancel
    follow: Follow
    authenticate: Authenticate
    local_login: LocalLogin | None
    """None where the server is not somebody's own machine."""
    aws_login: AwsLogin | None
    """None where nobody may log in by AWS."""
    identities: Identities
    hub: EventHub
    reservations: Reservations
    gpu_types: GpuTypes
    health: Health
    queue: MessageQueue
    catalogue: Catalogue
    clock: Clock
    simulated_types: frozenset[str] = frozenset()
    """The GPU types of which there are no real GPUs here."""
    notices: tuple[str, ...] = ()
    """What users should know of this cluster."""
