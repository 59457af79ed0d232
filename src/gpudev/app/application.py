"""Everything that the HTTP service can ask for, in one value."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

from gpudev.app.admin import Admin
from gpudev.app.audit_log import AuditTally, SealAudit
from gpudev.app.disk_reconciliation import ReconcileDisks
from gpudev.app.disks import OwnDisks
from gpudev.app.figures import ShowClusterFigures, ShowDiskFigures, ShowForecastFigures
from gpudev.app.identity.authentication import Admit, Authenticate, KeyUses
from gpudev.app.identity.aws_login import AwsLogin
from gpudev.app.identity.key_watch import KeyWatch
from gpudev.app.identity.login import Keys, LocalLogin, LoginGuard
from gpudev.app.nodes import DrainNodes
from gpudev.app.notifications import Notify
from gpudev.app.quotas import ShowQuotas
from gpudev.app.reports import ReportUsage
from gpudev.app.reservations.activity import EventHub, Follow, ReadLogs
from gpudev.app.reservations.lookup import Find, FindOperation, ListJobs
from gpudev.app.reservations.operations import Cancel, Extend, Keep
from gpudev.app.reservations.preview import Preview
from gpudev.app.reservations.submission import Reserve
from gpudev.app.service import CheckReadiness, DeadLetterDesk
from gpudev.domain.catalogue import Catalogue
from gpudev.ports.clock import Clock
from gpudev.ports.health import Health
from gpudev.ports.identity import Identities
from gpudev.ports.queue import MessageQueue
from gpudev.ports.store import GpuTypes, Reservations
from gpudev.ports.usage import Usages

TrustedProxies = tuple[IPv4Network | IPv6Network, ...]


@dataclass(frozen=True, slots=True)
class Application:
    reserve: Reserve
    preview: Preview
    show_quotas: ShowQuotas
    find: Find
    find_operation: FindOperation
    cancel: Cancel
    extend: Extend
    keep: Keep
    notify: Notify
    report_usage: ReportUsage
    follow: Follow
    disks: OwnDisks
    reconcile_disks: ReconcileDisks
    disk_figures: ShowDiskFigures
    forecast_figures: ShowForecastFigures
    cluster_figures: ShowClusterFigures
    list_jobs: ListJobs
    authenticate: Authenticate
    admit: Admit
    guard_login: LoginGuard
    keys: Keys
    admin: Admin
    drain_nodes: DrainNodes
    dead_letters: DeadLetterDesk
    key_uses: KeyUses
    key_watch: KeyWatch
    audit_tally: AuditTally
    seal_audit: SealAudit
    read_logs: ReadLogs
    local_login: LocalLogin | None
    """None where the server is not somebody's own machine."""
    aws_login: AwsLogin | None
    """None where nobody may log in by AWS."""
    identities: Identities
    hub: EventHub
    reservations: Reservations
    gpu_types: GpuTypes
    usages: Usages
    health: Health
    check_readiness: CheckReadiness
    queue: MessageQueue
    catalogue: Catalogue
    clock: Clock
    simulated_types: frozenset[str] = frozenset()
    """The GPU types of which there are no real GPUs here."""
    trusted_proxies: TrustedProxies = ()
    """Whose word on where a request came from is taken."""
    backend_fields: frozenset[str] = frozenset()
    """Fields of a submit that not every kind of cluster can do, and this one can."""
    ssh_proxy_url: str | None = None
    """By which clients reach dev servers; None: at their own addresses."""
    notices: tuple[str, ...] = ()
    """What users should know of this cluster."""
