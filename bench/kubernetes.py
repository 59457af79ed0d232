"""How long a person waits for a pod to log in to: by the product, and by hand in three ways, in turns.

`KUBECONFIG` names a cluster of `python -m tests.support.kubernetes up`, which nothing else uses meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.by_hand import make_public_key
from bench.kubernetes_by_hand import ByHand, hear_first_byte
from bench.kubernetes_findings import QUICK, Effort, Findings, report
from bench.page import Section
from gpudev.adapters.kubernetes.api_objects import OwnKinds, name_of
from gpudev.adapters.kubernetes.client import KubernetesClient, connect
from gpudev.client.session import Client
from gpudev.domain.names import ReservationId, server_name
from gpudev.wire.jobs import SubmitRequest
from tests.support.kubernetes.access import Access
from tests.support.kubernetes.cluster import Cluster, find_cluster
from tests.support.kubernetes_backend import NODE, make_config
from tests.support.kubernetes_machine import running_on_kubernetes
from tests.support.machine import Machine

TITLE = "Dev servers on Kubernetes"
COMMAND = "python -m bench kubernetes"
_PATIENCE_SECONDS = 240.0
_SETTLE_SECONDS = 4.0
"""Until a used port slot is replaced and kube-proxy has heard of the new one."""


@dataclass(frozen=True, slots=True)
class Subjects:
    """What is compared, all of it ready."""

    machine: Machine
    client: KubernetesClient
    pods: OwnKinds
    by_hand: ByHand


def measure(quick: bool = False) -> Section:  # noqa: FBT001, FBT002 - one switch, the same for every benchmark
    effort = QUICK if quick else Effort()
    access = find_test_cluster().access
    with access.namespace() as for_hand, _running_product(access) as (machine, namespace):
        found = asyncio.run(_measure_all(access, machine, (for_hand, namespace), effort))
    return Section(TITLE, COMMAND, report(found, effort))


def find_test_cluster() -> Cluster:
    kubeconfig = os.environ.get("KUBECONFIG", "")
    cluster = find_cluster(Path(kubeconfig)) if kubeconfig else None
    if cluster is None:
        raise RuntimeError("Set KUBECONFIG to a cluster of: python -m tests.support.kubernetes up")
    return cluster


@contextmanager
def _running_product(access: Access) -> Iterator[tuple[Machine, str]]:
    with TemporaryDirectory(prefix="gpu-dev-bench-") as folder, access.namespace() as namespace:
        settings = {"GPU_DEV_REQUESTS_PER_SECOND": "0", "GPU_DEV_KUBERNETES_PORT_SLOTS": "4"}
        with running_on_kubernetes(access, namespace, Path(folder), **settings) as machine:
            yield machine, namespace


async def _measure_all(
    access: Access, machine: Machine, namespaces: tuple[str, str], effort: Effort
) -> Findings:
    for_hand, of_product = namespaces
    addresses = access.get("node", NODE)["status"]["addresses"]
    address = next(one["address"] for one in addresses if one["type"] == "InternalIP")
    async with connect(str(access.kubeconfig)) as client:
        by_hand = ByHand(client, make_config(access.kubeconfig, for_hand), address)
        await by_hand.prepare()
        subjects = Subjects(machine, client, OwnKinds(of_product), by_hand)
        await _measure_in_a_row(subjects, effort.warm_ups)
        found = await _measure_in_a_row(subjects, effort.in_a_row)
        found.many_by_hand = await by_hand.time_many(effort.at_once)
        found.many_by_product = await asyncio.to_thread(_time_many, machine, effort.at_once)
    return found


async def _measure_in_a_row(subjects: Subjects, count: int) -> Findings:
    found = Findings()
    with subjects.machine.client() as client:
        for _ in range(count):
            found.ours.append(await subjects.by_hand.time_ours())
            found.bare.append(await subjects.by_hand.time_bare())
            found.usual.append(await subjects.by_hand.time_usual())
            await asyncio.sleep(_SETTLE_SECONDS)
            reservation, seconds = await asyncio.to_thread(_claim, client)
            found.product.append(seconds)
            found.cancel.append(await _time_cancel(subjects, client, reservation))
    return found


def _claim(client: Client) -> tuple[str, float]:
    client.whoami()  # An idle connection may have been closed: this opens it before the clock runs.
    request = _make_request()
    began = time.perf_counter()
    reservation = client.reserve(request).job_id
    client.wait_until(reservation, ["active"], timeout=_PATIENCE_SECONDS)
    job = client.get(reservation)
    assert job.node_ip is not None
    assert job.node_port is not None
    asyncio.run(hear_first_byte(job.node_ip, job.node_port))
    return reservation, time.perf_counter() - began


async def _time_cancel(subjects: Subjects, client: Client, reservation: str) -> float:
    """A watch is opened first, and told of the end as soon as the API server has it."""
    _, version = await subjects.client.list_all(subjects.pods.pods)
    heard = asyncio.create_task(_hear_of_deletion(subjects, version, reservation))
    await asyncio.sleep(0.2)
    began = time.perf_counter()
    await asyncio.to_thread(client.cancel, reservation)
    seconds = await heard - began
    await asyncio.to_thread(client.wait_until_clean, reservation, timeout=_PATIENCE_SECONDS)
    return seconds


async def _hear_of_deletion(subjects: Subjects, version: str, reservation: str) -> float:
    name = server_name(ReservationId(reservation))
    async for change, pod in subjects.client.watch(subjects.pods.pods, version):
        if change != "BOOKMARK" and name_of(pod) == name and "deletionTimestamp" in pod["metadata"]:
            return time.perf_counter()
    raise RuntimeError("The watch ended before the pod did.")


def _time_many(machine: Machine, count: int) -> float:
    def claim(_number: int) -> str:
        with machine.client() as client:
            return _claim(client)[0]

    with ThreadPoolExecutor(count) as threads:
        began = time.perf_counter()
        reservations = list(threads.map(claim, range(count)))
        seconds = time.perf_counter() - began
    with machine.client() as client:
        for reservation in reservations:
            client.cancel(reservation)
        for reservation in reservations:
            client.wait_until_clean(reservation, timeout=_PATIENCE_SECONDS)
    return seconds


def _make_request() -> SubmitRequest:
    return SubmitRequest(gpu_type="h100", gpu_count=1, duration_hours=1, ssh_public_keys=[make_public_key()])
