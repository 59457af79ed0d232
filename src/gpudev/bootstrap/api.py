"""The process that is the HTTP API."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil

import uvloop

from gpudev.adapters.github.directory import GitHubKeys
from gpudev.adapters.local.state import StateFolder
from gpudev.api.service import make_service
from gpudev.app.admin import Admin
from gpudev.app.application import Application
from gpudev.app.audit_log import AuditTally, SealAudit
from gpudev.app.disks import OwnDisks
from gpudev.app.figures import ShowClusterFigures, ShowDiskFigures, ShowForecastFigures
from gpudev.app.identity.authentication import Authenticate
from gpudev.app.identity.key_watch import KeyWatch
from gpudev.app.identity.login import LocalLogin
from gpudev.app.nodes import DrainNodes
from gpudev.app.notifications import Notify
from gpudev.app.quotas import ShowQuotas
from gpudev.app.reports import ReportUsage
from gpudev.app.reservations.activity import EventHub, Follow, ReadLogs
from gpudev.app.reservations.authorized_keys import FindWhomToLetIn
from gpudev.app.reservations.home_disk import DiskDesk
from gpudev.app.reservations.lookup import Find, FindOperation, JobsOf, ListJobs
from gpudev.app.reservations.operations import Cancel, Extend, Keep
from gpudev.app.reservations.preview import Preview
from gpudev.app.reservations.submission import Reserve
from gpudev.app.service import CheckReadiness, DeadLetterDesk
from gpudev.bootstrap.access import (
    make_admit,
    make_aws_login,
    make_issue_key,
    make_key_uses,
    make_keys,
    make_login_guard,
    make_submit_limiter,
    read_admins,
)
from gpudev.bootstrap.clusters import make_logs
from gpudev.bootstrap.disks import can_mount, make_listings, make_reconciliation, read_volumes
from gpudev.bootstrap.foundation import (
    Stores,
    SystemClock,
    begin,
    make_policy,
    offered_catalogue,
    open_stores,
    read_fleet,
    read_sharing,
    uses_kubernetes,
)
from gpudev.bootstrap.http_server import serve
from gpudev.bootstrap.listeners import Listeners, listening
from gpudev.bootstrap.metrics import serve_metrics
from gpudev.bootstrap.sandbox import read_sandboxing
from gpudev.bootstrap.workers import run_workers
from gpudev.settings import Settings
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say


def run_api() -> None:
    settings = Settings()
    begin(settings)
    # Before anything is served: a setting that names nobody must not go unseen.
    read_admins(settings)
    with listening(settings) as listeners:
        if settings.api.workers > 1:
            asyncio.run(run_workers(settings, listeners))
        else:
            uvloop.run(_serve_api(settings, listeners))


async def _serve_api(settings: Settings, listeners: Listeners) -> None:
    async with open_stores(settings) as stores:
        serve_metrics(settings.api, settings.api.metrics_dir)
        service = make_service(make_application(settings, stores), settings.connections.body_seconds)
        await serve(service, settings, listeners)


def make_application(settings: Settings, stores: Stores) -> Application:
    clock = SystemClock()
    catalogue = offered_catalogue(settings)
    local_login = _make_local_login(settings, stores, clock)
    github = GitHubKeys(settings.github.url, settings.github.timeout_seconds)
    find_whom_to_let_in = FindWhomToLetIn(github, stores.github_keys, clock)
    authenticate = Authenticate(stores.users, clock)
    key_watch = KeyWatch(authenticate)
    hub = EventHub(stores.signals, key_watch)
    key_uses = make_key_uses(stores, clock)
    tally = AuditTally(stores.audit, stores.health, clock)
    admit = make_admit(settings, authenticate, key_uses, tally, clock)
    jobs_of = JobsOf(stores.users, stores.audit)
    desk = DiskDesk(stores.disks, can_mount=can_mount(settings))
    preview = Preview(stores.forecasts, catalogue, make_policy(settings), clock, read_sharing(settings))
    return Application(
        reserve=Reserve(
            stores.reservations,
            catalogue,
            find_whom_to_let_in,
            desk,
            clock,
            preview,
            make_submit_limiter(settings, clock),
        ),
        preview=preview,
        show_quotas=ShowQuotas(
            stores.reservations, stores.gpu_types, catalogue, preview.sharing.quotas, clock
        ),
        disks=OwnDisks(stores.disks, clock, make_listings(settings)),
        reconcile_disks=make_reconciliation(settings, stores, read_volumes(settings, clock)),
        disk_figures=ShowDiskFigures(stores.disk_ledger, stores.health),
        forecast_figures=ShowForecastFigures(preview, stores.health),
        cluster_figures=ShowClusterFigures(
            stores.gpu_types, stores.reservations, stores.health, stores.dead_letters
        ),
        find=Find(stores.reservations, stores.audit, admit),
        find_operation=FindOperation(stores.operations),
        cancel=Cancel(stores.operations, clock),
        notify=Notify(stores.notifications, stores.audit, settings.notify.hosts),
        report_usage=ReportUsage(stores.reports, stores.audit, settings.reports.prices, clock),
        keep=Keep(stores.operations, clock),
        extend=Extend(
            stores.operations,
            make_policy(settings),
            clock,
            preview,
            stores.nodes,
            settings.time.extensions_beat_queue,
        ),
        follow=Follow(stores.reservations, hub),
        list_jobs=ListJobs(stores.reservations, admit, jobs_of, stores.history),
        authenticate=authenticate,
        admit=admit,
        guard_login=make_login_guard(settings, stores, tally, clock),
        keys=make_keys(settings, stores, clock),
        admin=Admin(stores.users, stores.audit, tally),
        dead_letters=DeadLetterDesk(stores.dead_letters, stores.audit),
        drain_nodes=DrainNodes(stores.nodes, stores.audit, clock),
        key_uses=key_uses,
        key_watch=key_watch,
        audit_tally=tally,
        seal_audit=SealAudit(stores.audit, stores.health, settings.access.seal_seconds),
        read_logs=ReadLogs(make_logs(settings), stores.job_outputs),
        local_login=local_login,
        aws_login=make_aws_login(settings, stores, clock, local_login),
        identities=stores.identities,
        hub=hub,
        reservations=stores.reservations,
        gpu_types=stores.gpu_types,
        usages=stores.usages,
        health=stores.health,
        check_readiness=make_readiness(settings, stores),
        queue=stores.queue,
        catalogue=catalogue,
        clock=clock,
        simulated_types=_find_simulated_types(settings),
        trusted_proxies=settings.access.proxies,
        ssh_proxy_url=settings.ssh_proxy.url or None,
        notices=_make_notices(settings),
        backend_fields=frozenset({"image"}) if uses_kubernetes(settings) else frozenset(),
    )


def make_readiness(settings: Settings, stores: Stores) -> CheckReadiness:
    def find_free_bytes() -> int | None:
        state_dir = settings.local.state_dir
        return shutil.disk_usage(state_dir).free if state_dir and state_dir.exists() else None

    return CheckReadiness(stores.health, find_free_bytes, settings.local.fewest_free_mib << 20)


def _make_local_login(settings: Settings, stores: Stores, clock: SystemClock) -> LocalLogin | None:
    if settings.local.state_dir is None:
        return None
    return LocalLogin(
        users=stores.users,
        issue_key=make_issue_key(settings, stores, clock),
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
