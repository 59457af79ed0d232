"""What disks cost: how much later a dev server is there, and how long it takes to reconcile a thousand.

The first is measured in turns, with a disk and without one, on one machine. The second is measured against
EC2 as moto's server plays it, with every call counted.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.by_hand import make_public_key
from bench.figures import Figure, milliseconds, table
from bench.machine import GPU_TYPE, running_machine
from bench.moto import running_moto
from bench.page import Section
from gpudev.adapters.aws.volumes import AwsVolumes, make_client
from gpudev.adapters.local.database.embedded_postgres import EmbeddedPostgres
from gpudev.adapters.local.sandbox.isolation import probe_isolation
from gpudev.adapters.postgres.migrate import migrate
from gpudev.adapters.postgres.pool import Database, connect
from gpudev.app.disk_reconciliation import DiskReconciliation
from gpudev.bootstrap.foundation import Stores, SystemClock
from gpudev.client.session import Client
from gpudev.domain.plans.reconciliation import Statistics
from gpudev.wire.jobs import SubmitRequest

TITLE = "Disks"
COMMAND = "python -m bench disks"
_PATIENCE_SECONDS = 120.0
_REGION = "us-east-2"
_ZONE = "us-east-2a"


@dataclass(slots=True)
class Starts:
    without: list[float] = field(default_factory=list)
    with_disk: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Reconciled:
    disks: int
    first_seconds: float
    """All volumes are new to the database."""
    again_seconds: float
    """All are known, and nothing differs."""
    calls: dict[str, int]
    """Of the second reconciliation."""


def measure(quick: bool = False) -> Section:  # noqa: FBT001, FBT002 - one switch, the same for every benchmark
    starts = _measure_starts(5 if quick else 60)
    counts = (10, 50) if quick else (10, 1000)
    reconciled = [asyncio.run(_measure_reconciliation(count)) for count in counts]
    return Section(TITLE, COMMAND, f"{_report_starts(starts)}\n\n{_report_reconciliation(reconciled)}")


def _measure_starts(count: int) -> Starts:
    """From the request to active; the same disk again and again, so each start finds its volume there."""
    starts = Starts()
    with running_machine(probe_isolation()) as machine, machine.client() as client:
        for disk in ("none", "bench"):
            _start_and_cancel(client, disk)
        for _ in range(count):
            starts.without.append(_start_and_cancel(client, "none"))
            starts.with_disk.append(_start_and_cancel(client, "bench"))
    return starts


def _start_and_cancel(client: Client, disk: str) -> float:
    request = SubmitRequest(
        gpu_type=GPU_TYPE, gpu_count=1, duration_hours=1, disk_name=disk, ssh_public_keys=[make_public_key()]
    )
    client.whoami()
    began = time.perf_counter()
    job = client.reserve(request).job_id
    client.wait_until(job, ("active",), timeout=_PATIENCE_SECONDS)
    seconds = time.perf_counter() - began
    client.cancel(job)
    client.wait_until_clean(job, timeout=_PATIENCE_SECONDS)
    while disk != "none" and client.disks.get(disk).state != "available":
        time.sleep(0.01)
    return seconds


async def _measure_reconciliation(count: int) -> Reconciled:
    with running_moto() as url, TemporaryDirectory(prefix="gpu-dev-bench-") as folder:
        server = EmbeddedPostgres(Path(folder, "postgres"))
        await server.start()
        try:
            return await _reconcile_twice(server.dsn, url, count)
        finally:
            await server.stop()


async def _reconcile_twice(dsn: str, url: str, count: int) -> Reconciled:
    connection = await connect(dsn)
    await migrate(connection)
    await connection.close()
    client = make_client("ec2", _REGION, url)
    await asyncio.to_thread(_make_volumes, client, count)
    calls: Counter[str] = Counter()
    client.meta.events.register("before-call", lambda model, **_: calls.update([model.name]))
    async with Database(dsn) as database:
        stores = Stores.on(database)
        await stores.users.upsert("ada")
        reconcile = DiskReconciliation(stores.disk_ledger, AwsVolumes(client, _ZONE), SystemClock(), "bench")
        first, made = await _time(reconcile)
        assert made.created == count
        calls.clear()
        again, found = await _time(reconcile)
        assert (found.synced, found.updated, found.errors) == (count, 0, 0)
    return Reconciled(count, first, again, dict(calls))


async def _time(reconcile: DiskReconciliation) -> tuple[float, Statistics]:
    began = time.perf_counter()
    done = await reconcile.run()
    assert done is not None
    return time.perf_counter() - began, done.statistics


def _make_volumes(client: Any, count: int) -> None:
    for number in range(count):
        tags = [{"Key": "gpu-dev-user", "Value": "ada"}, {"Key": "disk_name", "Value": f"disk-{number}"}]
        volume = client.create_volume(
            AvailabilityZone=_ZONE, Size=100, TagSpecifications=[{"ResourceType": "volume", "Tags": tags}]
        )
        specification = [{"ResourceType": "snapshot", "Tags": tags}]
        client.create_snapshot(VolumeId=volume["VolumeId"], TagSpecifications=specification)


def _report_starts(starts: Starts) -> str:
    figures = [
        Figure("without a disk", starts.without),
        Figure("with a disk that was used before", starts.with_disk),
    ]
    added = [with_disk - without for with_disk, without in zip(starts.with_disk, starts.without, strict=True)]
    median = milliseconds(Figure("", added).p50)
    return (
        f"From the request to active, in milliseconds, {len(starts.without)} of each in turns:\n\n"
        f"{table('start', figures)}\n\nA disk adds {median} ms (median of the differences)."
    )


def _report_reconciliation(found: Sequence[Reconciled]) -> str:
    rows = [
        f"| {each.disks} | {each.first_seconds:.2f} | {each.again_seconds:.2f} | {_describe(each.calls)} |"
        for each in found
    ]
    head = "| disks | all new, s | nothing new, s | calls of a reconciliation |\n|---:|---:|---:|---|"
    return (
        "Reconciliation with EC2 as moto plays it, each disk with a volume and a snapshot. Moto answers with "
        "everything on one page; AWS with up to 500 entries a page.\n\n" + "\n".join([head, *rows])
    )


def _describe(calls: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(calls.items()))
