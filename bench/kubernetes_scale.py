"""A fleet of hundreds of nodes and thousands of reservations at once, simulated by kwok on a real API server.

The product is real, and so are the API server, the scheduler and every object; only the kubelets are not.
`KUBECONFIG` names a cluster of `python -m tests.support.kubernetes up`, which nothing else uses meanwhile.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.by_hand import make_public_key
from bench.kubernetes import find_test_cluster
from bench.kubernetes_by_hand import ByHand
from bench.page import Section
from gpudev.adapters.kubernetes.client import connect
from gpudev.adapters.kubernetes.kinds import OwnKinds
from gpudev.adapters.kubernetes.labels import name_of
from gpudev.domain.names import NodeName
from gpudev.wire.jobs import SubmitRequest
from tests.support.kubernetes.access import Access
from tests.support.kubernetes.cluster import Cluster
from tests.support.kubernetes_backend import make_config, make_spec
from tests.support.kubernetes_machine import running_on_kubernetes
from tests.support.machine import Machine

TITLE = "A fleet on Kubernetes"
COMMAND = "python -m bench kubernetes-scale"
GPU_TYPE = "h100"
GPUS_PER_NODE = 8
_LISTED = ("pods", "services", "nodes", "events", "secrets")
_LIST_COUNT = re.compile(r'^apiserver_request_total\{.*resource="(\w+)".*verb="LIST".*\} (\d+)', re.MULTILINE)
_SUBMITTERS = 8
_AT_ONCE = 16
"""As many as the controller works on."""
_PATIENCE_SECONDS = 1800.0


@dataclass(frozen=True, slots=True)
class Effort:
    nodes: int = 500
    reservations: int = 2000


QUICK = Effort(nodes=20, reservations=40)


@dataclass(frozen=True, slots=True)
class Findings:
    """Moments in seconds since the first submit."""

    by_hand: float
    """How long it took to make the same objects without the product."""
    submitted: float
    created: list[float]
    """When a watch told of each pod."""
    active: float
    """When all were."""
    peak_memory: int
    """Of the controller, in bytes."""
    lists: dict[str, int]
    """How often each collection was listed by anybody meanwhile."""


def measure(quick: bool = False) -> Section:  # noqa: FBT001, FBT002 - one switch, the same for every benchmark
    effort = QUICK if quick else Effort()
    cluster = find_test_cluster()
    with _simulated_fleet(cluster, effort.nodes) as nodes:
        by_hand = asyncio.run(_make_by_hand(cluster.access, nodes, effort.reservations))
        with _running_product(cluster.access) as (machine, namespace):
            found = asyncio.run(_measure(cluster.access, machine, namespace, effort.reservations))
            machine.run("down", "--yes", "--keep-servers", "--state-dir", str(machine.state_dir))
    return Section(TITLE, COMMAND, _report(replace(found, by_hand=by_hand), effort))


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
def _running_product(access: Access) -> Iterator[tuple[Machine, str]]:
    with TemporaryDirectory(prefix="gpu-dev-bench-") as folder, access.namespace() as namespace:
        settings = {"GPU_DEV_REQUESTS_PER_SECOND": "0", "GPU_DEV_KUBERNETES_REACH": "pod"}
        with running_on_kubernetes(access, namespace, Path(folder), **settings) as machine:
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
            await asyncio.gather(*(make() for _ in range(_AT_ONCE)))
            seconds = time.perf_counter() - began
        for kind in ("pods", "services", "secrets"):
            access.kubectl("delete", "--raw", f"/api/v1/namespaces/{namespace}/{kind}")
    return seconds


async def _measure(access: Access, machine: Machine, namespace: str, count: int) -> Findings:
    lists = _count_lists(access)
    pods = OwnKinds(namespace).pods
    async with connect(str(access.kubeconfig)) as client:
        _, version = await client.list_all(pods)
        began = time.perf_counter()
        seen: dict[str, float] = {}

        async def watch() -> None:
            async for change, pod in client.watch(pods, version):
                if change != "BOOKMARK":
                    seen.setdefault(name_of(pod), time.perf_counter() - began)

        watching = asyncio.create_task(watch())
        submitted = await asyncio.to_thread(_submit_all, machine, count) - began
        active = await asyncio.to_thread(_wait_until_active, machine, count) - began
        watching.cancel()
    after = _count_lists(access)
    return Findings(
        by_hand=0.0,
        submitted=submitted,
        created=sorted(seen.values()),
        active=active,
        peak_memory=_peak_memory(machine.control_plane()["controller"]),
        lists={kind: after.get(kind, 0) - lists.get(kind, 0) for kind in _LISTED},
    )


def _submit_all(machine: Machine, count: int) -> float:
    request = SubmitRequest(
        gpu_type=GPU_TYPE, gpu_count=1, duration_hours=1, ssh_public_keys=[make_public_key()]
    )

    def submit(share: int) -> None:
        with machine.client() as client:
            for _ in range(share):
                client.reserve(request)

    with ThreadPoolExecutor(_SUBMITTERS) as threads:
        list(threads.map(submit, [count // _SUBMITTERS] * _SUBMITTERS))
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


def _peak_memory(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+) kB", text)[1]) * 1024  # type: ignore[index]  # always there


def _report(found: Findings, effort: Effort) -> str:
    created = found.created
    rate = (len(created) - 1) / (created[-1] - created[0])
    by_hand = effort.reservations / found.by_hand
    lists = ", ".join(f"{kind} {count}" for kind, count in found.lists.items())
    return f"""\
{effort.nodes} nodes of {GPUS_PER_NODE} GPUs, simulated by kwok on a real API server; {effort.reservations}
reservations of one GPU, submitted by {_SUBMITTERS} threads of one process without waiting. The database,
the API, one controller, the cluster's control plane, kwok and the benchmark share the machine. *By hand* are
the same Services, Secrets and pods, made by {_AT_ONCE} tasks just before, and not looked at again.

| | |
|---|---:|
| by hand: pods created a second | {by_hand:.1f} |
| all submitted after | {found.submitted:.1f} s |
| pods created | {len(created)} |
| all pods created after | {created[-1]:.1f} s |
| **admissions: pods created a second, from the first to the last** | {rate:.1f} |
| of those by hand | {rate / by_hand:.2f} |
| all active after | {found.active:.1f} s |
| peak memory of the controller | {found.peak_memory / 2**20:.0f} MiB |

Lists that anybody asked of the API server meanwhile, by its own count: {lists}."""
