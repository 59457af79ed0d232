"""Everything that the HTTP service can ask for, in one value."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

from gpudev.app.admin import Admin
from gpudev.app.admit import Admit
from gpudev.app.audit_tally import AuditTally
from gpudev.app.aws_login import AwsLogin
from gpudev.app.cancel import Cancel
from gpudev.app.cluster_figures import ShowClusterFigures
from gpudev.app.dead_letters import DeadLetterDesk
from gpudev.app.disk_figures import ShowDiskFigures
from gpudev.app.disks import OwnDisks
from gpudev.app.drain import DrainNodes
from gpudev.app.extend import Extend
from gpudev.app.find import Find, FindOperation
from gpudev.app.follow import EventHub, Follow
from gpudev.app.forecast_figures import ShowForecastFigures
from gpudev.app.keep import Keep
from gpudev.app.key_uses import KeyUses
from gpudev.app.key_watch import KeyWatch
from gpudev.app.keys import Keys
from gpudev.app.list_jobs import ListJobs
from gpudev.app.login import Authenticate, LocalLogin
from gpudev.app.login_guard import LoginGuard
from gpudev.app.notify import Notify
from gpudev.app.preview import Preview
from gpudev.app.quotas import ShowQuotas
from gpudev.app.read_logs import ReadLogs
from gpudev.app.readiness import CheckReadiness
from gpudev.app.reconcile_disks import ReconcileDisks
from gpudev.app.reports import ReportUsage
from gpudev.app.reserve import Reserve
from gpudev.app.sealing import SealAudit
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
