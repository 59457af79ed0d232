"""The application behind the HTTP API: its use cases, made from settings and stores."""

from __future__ import annotations

import os
import pwd
import shutil
from dataclasses import dataclass

from gpudev.adapters.github.directory import GitHubKeys
from gpudev.adapters.local.state import StateFolder
from gpudev.app.application import Application, BackgroundTask, ClusterInfo
from gpudev.app.audit_log import AuditSealer, AuditTally
from gpudev.app.disks import DiskUseCases
from gpudev.app.figures import ClusterFigures, DiskFigures, ForecastFigures
from gpudev.app.identity import IdentityUseCases
from gpudev.app.identity.authentication import Authentication, KeyOwners, KeyUses
from gpudev.app.identity.key_watch import KeyWatch
from gpudev.app.identity.login import LocalLogin
from gpudev.app.nodes import GpuTypeUseCases, NodeUseCases
from gpudev.app.notifications import NotificationUseCases
from gpudev.app.reports import QuotaReport, ReportUseCases
from gpudev.app.reservations import ReservationUseCases
from gpudev.app.reservations.activity import EventFeed, EventHub, ServerLog
from gpudev.app.reservations.authorized_keys import KeyCollection
from gpudev.app.reservations.home_disk import HomeDisks
from gpudev.app.reservations.lookup import Lookup
from gpudev.app.reservations.operations import OperationRequests
from gpudev.app.reservations.preview import Preview
from gpudev.app.reservations.submission import Submission
from gpudev.app.service import ServiceUseCases
from gpudev.bootstrap.access import (
    make_authentication,
    make_aws_login,
    make_key_issuer,
    make_key_ring,
    make_key_uses,
    make_login_guard,
    make_submit_limiter,
)
from gpudev.bootstrap.clusters import make_logs
from gpudev.bootstrap.disks import can_mount, make_listings, make_reconciliation, read_volumes
from gpudev.bootstrap.foundation import (
    Stores,
    SystemClock,
    make_policy,
    offered_catalogue,
    read_fleet,
    read_sharing,
    uses_kubernetes,
)
from gpudev.bootstrap.sandbox import read_sandboxing
from gpudev.domain.catalogue import Catalogue
from gpudev.settings import Settings
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say


@dataclass(frozen=True, slots=True)
class _Shared:
    """What several use cases are made of."""

    settings: Settings
    stores: Stores
    clock: SystemClock
    catalogue: Catalogue
    preview: Preview
    tally: AuditTally
    key_uses: KeyUses
    authentication: Authentication
    key_watch: KeyWatch
    hub: EventHub


def make_application(settings: Settings, stores: Stores) -> Application:
    shared = _make_shared(settings, stores)
    clock = shared.clock
    return Application(
        reservations=_make_reservations(shared),
        disks=DiskUseCases(stores.disks, clock, make_listings(settings)),
        nodes=NodeUseCases(stores.nodes, stores.audit, clock),
        gpu_types=GpuTypeUseCases(stores.nodes, shared.authentication),
        identity=_make_identity(shared),
        notifications=NotificationUseCases(stores.notifications, stores.audit, settings.notify.hosts),
        reports=_make_reports(shared),
        service=_make_service(settings, stores),
        cluster=_describe_cluster(settings, shared.catalogue),
        now=clock.now,
        background=_list_background(shared),
        trusted_proxies=settings.access.proxies,
    )


def _make_shared(settings: Settings, stores: Stores) -> _Shared:
    clock = SystemClock()
    catalogue = offered_catalogue(settings)
    owners = KeyOwners(stores.users, clock)
    key_watch = KeyWatch(owners)
    key_uses = make_key_uses(stores, clock)
    tally = AuditTally(stores.audit, stores.health, clock)
    policy, sharing = make_policy(settings), read_sharing(settings)
    return _Shared(
        settings=settings,
        stores=stores,
        clock=clock,
        catalogue=catalogue,
        preview=Preview(stores.admissions, catalogue, policy, clock, sharing),
        tally=tally,
        key_uses=key_uses,
        authentication=make_authentication(settings, owners, key_uses, tally, clock),
        key_watch=key_watch,
        hub=EventHub(stores.messages.signals, key_watch),
    )


def _make_reservations(shared: _Shared) -> ReservationUseCases:
    settings, stores, clock, preview = shared.settings, shared.stores, shared.clock, shared.preview
    beats_queue = settings.time.extensions_beat_queue
    return ReservationUseCases(
        store=stores.reservations,
        lookup=Lookup(
            stores.reservations,
            stores.audit,
            shared.authentication,
            stores.users,
            stores.reservations.history,
        ),
        submission=_make_submission(shared),
        operations=OperationRequests(stores.operations, clock, preview, stores.nodes, beats_queue),
        forecasts=preview,
        feed=EventFeed(stores.reservations, shared.hub),
        server_log=ServerLog(make_logs(settings), stores.reservations),
        usages=stores.reports,
        key_watch=shared.key_watch,
    )


def _make_submission(shared: _Shared) -> Submission:
    settings, stores, clock = shared.settings, shared.stores, shared.clock
    github = GitHubKeys(settings.github.url, settings.github.timeout_seconds)
    return Submission(
        reservations=stores.reservations,
        catalogue=shared.catalogue,
        keys=KeyCollection(github, stores.github, clock),
        disks=HomeDisks(stores.disks, can_mount=can_mount(settings)),
        clock=clock,
        preview=shared.preview,
        submits=make_submit_limiter(settings, clock),
    )


def _make_identity(shared: _Shared) -> IdentityUseCases:
    settings, stores, clock = shared.settings, shared.stores, shared.clock
    local_login = _make_local_login(settings, stores, clock)
    return IdentityUseCases(
        authentication=shared.authentication,
        keys=make_key_ring(settings, stores, clock),
        guard=make_login_guard(settings, stores, shared.tally, clock),
        users=stores.users,
        identities=stores.users,
        audit=stores.audit,
        tally=shared.tally,
        local_login=local_login,
        aws_login=make_aws_login(settings, stores, clock, local_login),
    )


def _make_reports(shared: _Shared) -> ReportUseCases:
    settings, stores, clock = shared.settings, shared.stores, shared.clock
    quotas = shared.preview.sharing.quotas
    return ReportUseCases(
        reports=stores.reports,
        audit=stores.audit,
        prices=settings.reports.prices,
        clock=clock,
        quota_report=QuotaReport(stores.reservations, stores.nodes, shared.catalogue, quotas, clock),
        storage=make_reconciliation(settings, stores, read_volumes(settings, clock)),
        disks=stores.disks,
    )


def _make_service(settings: Settings, stores: Stores) -> ServiceUseCases:
    def find_free_bytes() -> int | None:
        state_dir = settings.local.state_dir
        return shutil.disk_usage(state_dir).free if state_dir and state_dir.exists() else None

    return ServiceUseCases(
        stores.health,
        stores.messages.dead_letters,
        stores.audit,
        find_free_bytes,
        settings.local.fewest_free_mib << 20,
    )


def _list_background(shared: _Shared) -> tuple[BackgroundTask, ...]:
    stores = shared.stores
    return (
        shared.hub,
        shared.key_uses,
        AuditSealer(stores.audit, stores.health, shared.settings.access.seal_seconds),
        shared.tally,
        DiskFigures(stores.disk_ledger, stores.health),
        ClusterFigures(stores.nodes, stores.reservations, stores.health, stores.messages.dead_letters),
        ForecastFigures(shared.preview, stores.health),
    )


def _describe_cluster(settings: Settings, catalogue: Catalogue) -> ClusterInfo:
    return ClusterInfo(
        catalogue=catalogue,
        simulated_types=_find_simulated_types(settings),
        backend_fields=frozenset({"image"}) if uses_kubernetes(settings) else frozenset(),
        ssh_proxy_url=settings.ssh_proxy.url or None,
        notices=_make_notices(settings),
    )


def _make_local_login(settings: Settings, stores: Stores, clock: SystemClock) -> LocalLogin | None:
    if settings.local.state_dir is None:
        return None
    return LocalLogin(
        users=stores.users,
        issuer=make_key_issuer(settings, stores, clock),
        clock=clock,
        secret=StateFolder(settings.local.state_dir).read_login_secret(),
        owner=pwd.getpwuid(os.getuid()).pw_name,
        hosts=frozenset(f"{host}:{settings.api.port}" for host in (settings.api.host, "localhost")),
    )


def _find_simulated_types(settings: Settings) -> frozenset[str]:
    if settings.local.state_dir is None or uses_kubernetes(settings):
        return frozenset()
    return frozenset(node.gpu_type for node in read_fleet(settings).nodes if node.is_simulated)


def _make_notices(settings: Settings) -> tuple[str, ...]:
    if settings.local.state_dir is None or uses_kubernetes(settings):
        return ()
    simulated = sorted(_find_simulated_types(settings))
    notice = say(fact("simulated_types", types=simulated))
    return (*([notice] if simulated else []), read_sandboxing(settings.local).sentence)
