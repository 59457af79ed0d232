"""A Kubernetes cluster as the `Cluster` port: reservations become pods.

Everything that is known comes from four watches, kept in a `View`; every call of ours puts its answer there
as well, so that what was just made is seen at once. Any number of these may work on one namespace: names
are derived from reservations, and the API server lets only one of two makers win.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

import structlog

from gpudev.adapters.kubernetes.client import KubernetesClient, connect
from gpudev.adapters.kubernetes.config import KubernetesConfig
from gpudev.adapters.kubernetes.following import Followers
from gpudev.adapters.kubernetes.kinds import ALL_PODS, NODES, OwnKinds
from gpudev.adapters.kubernetes.labels import owner_of
from gpudev.adapters.kubernetes.making import Maker
from gpudev.adapters.kubernetes.port_slots import PortSlots
from gpudev.adapters.kubernetes.view import PODS, SERVICES, Outside, View
from gpudev.adapters.kubernetes.watch import Watch
from gpudev.domain.errors import ClusterUnavailable
from gpudev.domain.idle import Usage
from gpudev.domain.names import ReservationId, server_name
from gpudev.domain.notices import Notice
from gpudev.domain.plans.orphans import Leftover
from gpudev.domain.server import ObservedServer, ServerSpec
from gpudev.ports.announcements import Announcements
from gpudev.ports.cluster import ClusterChange, Snapshot

_log = structlog.get_logger(__name__)


class KubernetesCluster:
    """An async context manager: open, it has seen everything once and goes on watching."""

    def __init__(self, config: KubernetesConfig) -> None:
        self._config = config
        self._kinds = OwnKinds(config.namespace)
        self._announcements = Announcements()
        self._view = View(config.namespace, config.catalogue, self._make_outside())
        self._followers = Followers(config.reach, self._view)
        self._stack = AsyncExitStack()
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: _Open | None = None
        self.cluster_id = ""
        """Tells this namespace from every other, once it is open."""

    async def __aenter__(self) -> Self:
        client = await self._stack.enter_async_context(connect(self._config.kubeconfig))
        maker = Maker(client, self._config, self._view)
        self.cluster_id = await maker.prepare_namespace()
        watches = [
            Watch(client, NODES, self._view.nodes),
            Watch(client, self._kinds.services, self._view.services),
            Watch(client, ALL_PODS, self._view.pods),
            Watch(client, self._kinds.events, self._view.events),
        ]
        await asyncio.gather(*(watch.fill() for watch in watches))
        slots = PortSlots(client, self._config, self._view)
        self._open = _Open(client, maker, slots)
        for work in (*(watch.run() for watch in watches), slots.run()):
            self._do_meanwhile(work)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop watching. The dev servers run on."""
        self._open = None
        self._followers.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._announcements.close()
        await self._stack.aclose()

    def snapshot(self) -> Snapshot:
        self._get_open()
        return self._view.snapshot()

    async def find_server(self, reservation_id: ReservationId) -> ObservedServer | None:
        item = await self._get_open().client.find(self._kinds.pods, server_name(reservation_id))
        if item is None or owner_of(item) != reservation_id:
            return None
        return self._view.observe(self._view.put_pod(item))

    async def create_server(self, spec: ServerSpec) -> None:
        parts = self._get_open()
        if self._view.find_pod(spec.reservation_id) is None:
            self._view.put_pod(await parts.maker.make_server(spec))

    async def delete_server(self, reservation_id: ReservationId, uid: str) -> None:
        parts = self._get_open()
        pod = self._view.find_pod(reservation_id)
        name = server_name(reservation_id)
        if pod is not None and pod.uid == uid and pod.service == name:
            await self._delete_own_service(parts.client, reservation_id)
        # Where the node is gone there is nobody to confirm the end.
        has_node = pod is None or pod.node is None or self._view.find_node(pod.node) is not None
        left = await parts.client.delete(self._kinds.pods, name, uid, at_once=not has_node)
        if left is None:
            self._view.pods.forget(name, uid, self._config.namespace)
        elif left.get("kind") == "Pod":
            self._view.put_pod(left)

    async def tell(self, reservation_id: ReservationId, uid: str, notices: tuple[Notice, ...]) -> None:
        raise ClusterUnavailable(f"Nobody on {server_name(reservation_id)} {uid} can be told {len(notices)}.")

    async def measure(self, reservation_id: ReservationId, uid: str, now: datetime) -> Usage | None:
        """Nothing is known yet, and what is not known counts as use."""
        pod = self._view.find_pod(reservation_id)
        return Usage(now, {}) if pod is not None and pod.uid == uid else None

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

    async def _delete_own_service(self, client: KubernetesClient, reservation_id: ReservationId) -> None:
        service = self._view.find_service(server_name(reservation_id))
        if service is not None and service.owner == reservation_id:
            await client.delete(self._kinds.services, service.name, service.uid)
            self._view.services.forget(service.name, service.uid, self._config.namespace)

    def _make_outside(self) -> Outside:
        return Outside(
            now=lambda: datetime.now(UTC),
            tell=self._announcements.tell,
            look_again=self._look_again,
            pod_changed=self._pod_changed,
        )

    def _look_again(self, at: datetime, reservation_id: ReservationId) -> None:
        delay = (at - datetime.now(UTC)).total_seconds()
        asyncio.get_running_loop().call_later(max(0.0, delay), self._view.refresh_server, reservation_id)

    def _pod_changed(self, reservation_id: ReservationId) -> None:
        self._followers.follow(reservation_id)
        if self._open is not None:
            self._open.slots.wake()

    def _get_open(self) -> _Open:
        if self._open is None:
            raise ClusterUnavailable("The Kubernetes cluster is not open.")
        return self._open

    def _do_meanwhile(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_end)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        """A watch ends only by an error of ours, and then nobody may go on as if it were heard."""
        if not task.cancelled() and (error := task.exception()):
            _log.error("watch_failed", exc_info=error)
            self._open = None
            self._announcements.close(error)


class _Open:
    """What there is only while the cluster is open."""

    def __init__(self, client: KubernetesClient, maker: Maker, slots: PortSlots) -> None:
        self.client = client
        self.maker = maker
        self.slots = slots
