"""A Kubernetes cluster as the ports `Cluster` and `Logs`: reservations become pods.

Everything that is known comes from four watches, kept in a `View`; the answer of each of our calls is put
there as well, so that a new object is seen at once. Any number of these may work on one namespace: names are
derived from reservations, and the API server lets only one of two creators win.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Self

from gpudev.adapters.kubernetes.api_objects import ALL_PODS, NODES, OwnKinds, owner_of
from gpudev.adapters.kubernetes.client import KubernetesClient, Refused, connect
from gpudev.adapters.kubernetes.config import KubernetesConfig
from gpudev.adapters.kubernetes.facts import PodFacts
from gpudev.adapters.kubernetes.object_cache import Watch
from gpudev.adapters.kubernetes.old_startups import OldStartups
from gpudev.adapters.kubernetes.pod_exec import PodExec
from gpudev.adapters.kubernetes.port_slots import PortSlots
from gpudev.adapters.kubernetes.provisioner import Provisioner
from gpudev.adapters.kubernetes.ssh_probe import SshProbes
from gpudev.adapters.kubernetes.view import PODS, SERVICES, Outside, View
from gpudev.domain.errors import ClusterUnavailable, NotFound
from gpudev.domain.idle import Usage, combine
from gpudev.domain.job import Job
from gpudev.domain.names import ReservationId, id8, member_name, server_name
from gpudev.domain.notices import Notice
from gpudev.domain.plans.orphans import Leftover
from gpudev.domain.server import ObservedServer, ServerSpec
from gpudev.domain.volume import FileListing
from gpudev.faults import FAULTS
from gpudev.ports.cluster import Announcements, ClusterChange, LogQuery, Snapshot

_PAUSE_SECONDS = 30.0
"""From the end of what goes on for ever to its next start, where there is nothing to do for it."""


class KubernetesCluster:
    """An async context manager: open, it has seen everything once and goes on watching."""

    def __init__(self, config: KubernetesConfig) -> None:
        self._config = config
        self._kinds = OwnKinds(config.namespace)
        self._announcements = Announcements()
        self._view = View(config.namespace, config.catalogue, self._make_outside(), config.zone_label)
        self._ssh_probes = SshProbes(config.reach, self._view)
        self._stack = AsyncExitStack()
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: _Open | None = None
        self.cluster_id = ""
        """Tells this namespace from every other, once it is open."""

    async def __aenter__(self) -> Self:
        client = await self._stack.enter_async_context(connect(self._config.kubeconfig))
        provisioner = Provisioner(client, self._config, self._view)
        self.cluster_id = await provisioner.prepare_namespace()
        watches = [
            Watch(client, NODES, self._view.nodes),
            Watch(client, self._kinds.services, self._view.services),
            Watch(client, ALL_PODS, self._view.pods),
            Watch(client, self._kinds.events, self._view.events),
        ]
        await asyncio.gather(*(watch.fill() for watch in watches))
        slots = PortSlots(client, self._config, self._view)
        self._open = _Open(client, provisioner, slots, PodExec(client, self._kinds, self._view.note_ooms))
        old_startups = OldStartups(client, self._config.namespace)
        self._do_meanwhile("port_slots", slots.run)
        self._do_meanwhile("homes", provisioner.homes.run)
        self._do_meanwhile("old_startups", old_startups.run)
        for watch in watches:
            self._do_meanwhile("watch", watch.run)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop watching. The dev servers run on."""
        self._open = None
        self._ssh_probes.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._announcements.close()
        await self._stack.aclose()

    def snapshot(self) -> Snapshot:
        self._get_open()
        return self._view.snapshot()

    async def find_server(self, reservation_id: ReservationId, node_count: int = 1) -> ObservedServer | None:
        """Each member by its name: a list of everything would be asked for again and again."""
        client = self._get_open().client
        names = (member_name(reservation_id, rank) for rank in range(node_count))
        found = await asyncio.gather(*(client.find(self._kinds.pods, name) for name in names))
        own = [item for item in found if item is not None and owner_of(item) == reservation_id]
        return self._view.observe([self._view.put_pod(item) for item in own]) if own else None

    async def create_server(self, spec: ServerSpec) -> None:
        parts = self._get_open()
        known = self._view.list_pods(spec.reservation_id)
        if len(known) == len(spec.nodes) and len({pod.server_uid for pod in known}) == 1:
            return
        for pod in await parts.provisioner.make_server(spec):
            self._view.put_pod(pod)

    async def delete_server(self, reservation_id: ReservationId, uid: str) -> None:
        parts = self._get_open()
        pods = self._list_members(reservation_id, uid)
        if not pods:
            # Made by another, perhaps, and not heard of yet.
            await self._delete_pod(parts.client, server_name(reservation_id), uid, at_once=False)
            return
        await self._delete_own_services(parts.client, reservation_id)
        # Where the node is gone there is nobody to confirm the end.
        lost = {pod.name for pod in pods if pod.node is not None and self._view.find_node(pod.node) is None}
        deletions = (
            self._delete_pod(parts.client, pod.name, pod.uid, at_once=pod.name in lost) for pod in pods
        )
        await asyncio.gather(*deletions)

    async def tell(self, reservation_id: ReservationId, uid: str, notices: tuple[Notice, ...]) -> None:
        parts = self._get_open()
        pods = self._list_members(reservation_id, uid)
        for pod in pods:
            self._check_node(pod)
        await asyncio.gather(*(parts.pod_exec.tell(pod, notices) for pod in pods))

    async def list_home(self, reservation_id: ReservationId, uid: str) -> FileListing | None:
        parts = self._get_open()
        first = next(iter(self._list_members(reservation_id, uid)), None)
        if first is None or not self._view.has_answered(first):
            return None
        self._check_node(first)
        return await parts.pod_exec.list_home(first)

    async def find_job(self, reservation_id: ReservationId, uid: str) -> Job | None:
        parts = self._get_open()
        first = next(iter(self._list_members(reservation_id, uid)), None)
        if first is None or not self._view.has_answered(first):
            return None
        self._check_node(first)
        return await parts.pod_exec.find_job(first, id8(reservation_id))

    async def measure(self, reservation_id: ReservationId, uid: str, now: datetime) -> Usage | None:
        parts = self._get_open()
        pods = self._list_members(reservation_id, uid)
        if not pods or not all(map(self._view.has_answered, pods)):
            return None
        looks = (parts.pod_exec.measure(pod, self._view.gpus_of(pod), now) for pod in pods)
        return combine(await asyncio.gather(*looks))

    async def discard_port_slot(self, port_slot: str) -> None:
        await self._get_open().slots.discard(port_slot)

    def list_leftovers(self) -> tuple[Leftover, ...]:
        self._get_open()
        return tuple(self._view.list_leftovers())

    async def remove_leftover(self, leftover: Leftover) -> None:
        kind = {PODS: self._kinds.pods, SERVICES: self._kinds.services}[leftover.kind]
        await self._get_open().client.delete(kind, leftover.name, leftover.uid)

    def changes(self) -> AsyncIterator[ClusterChange]:
        return self._announcements.listen()

    def _list_members(self, reservation_id: ReservationId, uid: str) -> list[PodFacts]:
        return [pod for pod in self._view.list_pods(reservation_id) if pod.server_uid == uid]

    def _check_node(self, pod: PodFacts) -> None:
        """Where the kubelet is silent, a program would be waited for in vain."""
        node = self._view.find_node(pod.node) if pod.node else None
        if node is None or not node.is_ready:
            raise ClusterUnavailable("node_of_pod_silent", pod=pod.name)

    async def _delete_own_services(self, client: KubernetesClient, reservation_id: ReservationId) -> None:
        for service in self._view.list_services(reservation_id):
            await client.delete(self._kinds.services, service.name, service.uid)
            self._view.services.forget(service.name, service.uid, self._config.namespace)

    async def _delete_pod(self, client: KubernetesClient, name: str, uid: str, *, at_once: bool) -> None:
        left = await client.delete(self._kinds.pods, name, uid, at_once=at_once)
        if left is None:
            self._view.pods.forget(name, uid, self._config.namespace)
        elif left.get("kind") == "Pod":
            self._view.put_pod(left)

    def _make_outside(self) -> Outside:
        return Outside(
            now=lambda: datetime.now(UTC),
            tell=self._announcements.tell,
            look_again=lambda at, owner: _call_at(at, partial(self._view.refresh_server, owner)),
            look_at_node_again=lambda at, name: _call_at(at, partial(self._view.refresh_node, name)),
            pod_changed=self._pod_changed,
        )

    def _pod_changed(self, reservation_id: ReservationId) -> None:
        self._ssh_probes.follow(reservation_id)
        if self._open is not None:
            self._open.slots.wake()

    def _get_open(self) -> _Open:
        if self._open is None:
            raise ClusterUnavailable("kubernetes_not_open")
        return self._open

    def _do_meanwhile(self, chore: str, work: Callable[[], Awaitable[None]]) -> None:
        """Again after each end, which only an error of ours brings; then the view is as old as that."""
        self._tasks.add(asyncio.create_task(FAULTS.repeat(chore, work, _PAUSE_SECONDS)))


def _call_at(at: datetime, action: Callable[[], None]) -> None:
    delay = (at - datetime.now(UTC)).total_seconds()
    asyncio.get_running_loop().call_later(max(0.0, delay), action)


class _Open:
    """What there is only while the cluster is open."""

    def __init__(
        self, client: KubernetesClient, provisioner: Provisioner, slots: PortSlots, pod_exec: PodExec
    ) -> None:
        self.client = client
        self.pod_exec = pod_exec
        self.provisioner = provisioner
        self.slots = slots


class KubernetesLogs:
    """Each read has a connection of its own: there are few, and some of them last for hours."""

    def __init__(self, kubeconfig: str, namespace: str) -> None:
        self._kubeconfig = kubeconfig
        self._pods = OwnKinds(namespace).pods

    async def read(self, reservation_id: ReservationId, query: LogQuery) -> AsyncIterator[bytes]:
        name = server_name(reservation_id)
        async with connect(self._kubeconfig) as client:
            pod = await client.find(self._pods, name)
            if pod is None or owner_of(pod) != reservation_id:
                raise NotFound("log_without_server", id=reservation_id)
            try:
                async for chunk in client.read_log(self._pods, name, _parameters_of(query)):
                    yield chunk
            except Refused as refusal:
                raise NotFound("log_not_there_yet", why=refusal.why) from refusal


def _parameters_of(query: LogQuery) -> dict[str, str]:
    tail = {"tailLines": str(query.tail)} if query.tail is not None else {}
    return {**tail, "follow": "true"} if query.follow else tail
