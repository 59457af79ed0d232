"""A fleet of hundreds of nodes and thousands of reservations at once, simulated by kwok on a real API server.

The product is real, and so are the API server, the scheduler and every object; only the kubelets are not.
`KUBECONFIG` names a cluster of `python -m tests.support.kubernetes up`, which nothing else uses meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import cpu
from bench.by_hand import make_public_key
from bench.kubernetes import find_test_cluster
from bench.kubernetes_by_hand import ByHand
from bench.kubernetes_scale_findings import (
    AT_ONCE,
    GPU_TYPE,
    GPUS_PER_NODE,
    SUBMITTERS,
    Findings,
    Worked,
    report,
)
from bench.page import Section
from gpudev.adapters.kubernetes.api_objects import Kind, OwnKinds, name_of
from gpudev.adapters.kubernetes.client import KubernetesClient, connect
from gpudev.domain.names import NodeName
from gpudev.wire.jobs import SubmitRequest
from tests.support.kubernetes.access import Access
from tests.support.kubernetes.cluster import Cluster
from tests.support.kubernetes_backend import make_config, make_spec
from tests.support.kubernetes_machine import running_on_kubernetes
from tests.support.machine import Machine, list_children

TITLE = "A fleet on Kubernetes"
COMMAND = "python -m bench kubernetes-scale"
_LISTED = ("pods", "services", "nodes", "events", "secrets")
_LIST_COUNT = re.compile(r'^apiserver_request_total\{.*resource="(\w+)".*verb="LIST".*\} (\d+)', re.MULTILINE)
_PATIENCE_SECONDS = 1800.0


@dataclass(frozen=True, slots=True)
class Effort:
    nodes: int = 500
    reservations: int = 2000


QUICK = Effort(nodes=20, reservations=40)


def measure(quick: bool = False) -> Section:  # noqa: FBT001, FBT002 - one switch, the same for every benchmark
    effort = QUICK if quick else Effort()
    cluster = find_test_cluster()
    with _simulated_fleet(cluster, effort.nodes) as nodes:
        by_hand = asyncio.run(_make_by_hand(cluster.access, nodes, effort.reservations))
        found = [_measure_product(cluster, controllers, effort) for controllers in (1, 2)]
    return Section(TITLE, COMMAND, report(by_hand, found, effort.nodes))


def _measure_product(cluster: Cluster, controllers: int, effort: Effort) -> Findings:
    with _running_product(cluster.access, controllers) as (machine, namespace):
        found = asyncio.run(_measure(cluster, machine, namespace, effort.reservations))
        machine.run("down", "--yes", "--keep-servers", "--state-dir", str(machine.state_dir))
    _wait_until_gone(cluster.access, namespace)
    return found


@contextmanager
def _simulated_fleet(cluster: Cluster, count: int) -> Iterator[tuple[str, ...]]:
    """The real node of that type steps aside: its pods would be real."""
    cluster.access.kubectl("label", "node", "node-a", "gpu-type-")
    try:
        yield cluster.add_simulated_nodes(GPU_TYPE, count=count, gpus=GPUS_PER_NODE)
    finally:
        cluster.remove_simulated_nodes()
        cluster.access.kubectl("label", "--overwrite", "node", "node-a", f"gpu-type={GPU_TYPE}")


@contextmanager
def _running_product(access: Access, controllers: int) -> Iterator[tuple[Machine, str]]:
    with TemporaryDirectory(prefix="gpu-dev-bench-") as folder, access.namespace() as namespace:
        settings = {
            "GPU_DEV_REQUESTS_PER_SECOND": "0",
            "GPU_DEV_KUBERNETES_REACH": "pod",
            # No program can be run in a simulated pod.
            "GPU_DEV_USAGE_SECONDS": "86400",
        }
        with running_on_kubernetes(
            access, namespace, Path(folder), controllers=controllers, **settings
        ) as machine:
            yield machine, namespace


async def _make_by_hand(access: Access, nodes: tuple[str, ...], count: int) -> float:
    """Service, Secret and pod for each, as the product makes them, and nothing else; then they go."""
    with access.namespace() as namespace:
        async with connect(str(access.kubeconfig)) as client:
            by_hand = ByHand(client, make_config(access.kubeconfig, namespace), "")
            await by_hand.prepare()
            specs = iter([make_spec(node=NodeName(nodes[number % len(nodes)])) for number in range(count)])

            async def make() -> None:
                for spec in specs:
                    await by_hand.make_objects(spec)

            began = time.perf_counter()
            await asyncio.gather(*(make() for _ in range(AT_ONCE)))
            seconds = time.perf_counter() - began
    _wait_until_gone(access, namespace)
    return seconds


def _wait_until_gone(access: Access, namespace: str) -> None:
    """Taking thousands of objects away is work of the cluster that the next measurement must not pay for."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while access.kubectl("get", "namespace", namespace, "--ignore-not-found"):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{namespace} is still there after {_PATIENCE_SECONDS:.0f} seconds.")
        time.sleep(1)


async def _measure(cluster: Cluster, machine: Machine, namespace: str, count: int) -> Findings:
    access = cluster.access
    lists = _count_lists(access)
    controllers = _list_controllers(machine)
    worked = _read_cpu(cluster, controllers)
    async with connect(str(access.kubeconfig)) as client:
        seen = _Sightings(client, OwnKinds(namespace).pods)
        watching = asyncio.create_task(seen.watch(await seen.list()))
        submitted = await asyncio.to_thread(_submit_all, machine, count) - seen.began
        active = await asyncio.to_thread(_wait_until_active, machine, count) - seen.began
        watching.cancel()
    after = _count_lists(access)
    return Findings(
        submitted=submitted,
        created=sorted(seen.first.values()),
        active=active,
        worked=_read_cpu(cluster, controllers) - worked,
        peak_memory=max(map(_peak_memory, controllers)),
        lists={kind: after.get(kind, 0) - lists.get(kind, 0) for kind in _LISTED},
    )


class _Sightings:
    """When a watch first told of each pod, in seconds since it began."""

    def __init__(self, client: KubernetesClient, pods: Kind) -> None:
        self._client = client
        self._pods = pods
        self.first: dict[str, float] = {}
        self.began = time.perf_counter()

    async def list(self) -> str:
        """The version from which a watch can go on; the clock begins here."""
        _, version = await self._client.list_all(self._pods)
        self.began = time.perf_counter()
        return version

    async def watch(self, version: str) -> None:
        """A watch has an end, and the next one goes on from there."""
        while True:
            async for change, pod in self._client.watch(self._pods, version):
                version = pod["metadata"]["resourceVersion"]
                if change != "BOOKMARK":
                    self.first.setdefault(name_of(pod), time.perf_counter() - self.began)


def _submit_all(machine: Machine, count: int) -> float:
    request = SubmitRequest(
        gpu_type=GPU_TYPE, gpu_count=1, duration_hours=1, ssh_public_keys=[make_public_key()]
    )

    def submit(share: int) -> None:
        with machine.client() as client:
            for _ in range(share):
                client.reserve(request)

    with ThreadPoolExecutor(SUBMITTERS) as threads:
        list(threads.map(submit, [count // SUBMITTERS] * SUBMITTERS))
    return time.perf_counter()


def _wait_until_active(machine: Machine, count: int) -> float:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    with machine.client() as client:
        while client.list(statuses=["active"], limit=1).total < count:
            if time.monotonic() > deadline:
                total = client.list(statuses=["active"], limit=1).total
                raise TimeoutError(f"{total} of {count} are active after {_PATIENCE_SECONDS:.0f} seconds.")
            time.sleep(1)
    return time.perf_counter()


def _count_lists(access: Access) -> dict[str, int]:
    counts: dict[str, int] = {}
    for kind, count in _LIST_COUNT.findall(access.kubectl("get", "--raw", "/metrics")):
        counts[kind] = counts.get(kind, 0) + int(count)
    return counts


def _list_controllers(machine: Machine) -> tuple[int, ...]:
    """The one of the machine, and the second one, if any, which is a child of ours."""
    second = list_children(os.getpid(), Path(sys.executable).name)
    return (machine.control_plane()["controller"], *second)


def _read_cpu(cluster: Cluster, controllers: tuple[int, ...]) -> Worked:
    plane = cluster.control_plane
    api_server = (plane.api_server.process.get_pid(), plane.etcd.process.get_pid())
    return Worked(
        sum(map(cpu.of_process, controllers)), sum(map(cpu.of_process, api_server)), cpu.of_machine()
    )


def _peak_memory(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]) * 1024  # type: ignore[index]  # always there
