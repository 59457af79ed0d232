"""Pods made without the product, to compare it with: what the cluster itself takes.

*Ours* are the objects that the product makes, applied by hand, with a Service that waits for them as it does
there. *Bare* is the least that answers on SSH. *Usual* is what one writes without measuring: pod and Service
together, with a readiness probe every second.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from dataclasses import dataclass, replace

from gpudev.adapters.kubernetes.api_objects import PORT_SLOT, Json, Kind, OwnKinds, name_of, uid_of
from gpudev.adapters.kubernetes.client import AlreadyExists, KubernetesClient
from gpudev.adapters.kubernetes.config import KubernetesConfig
from gpudev.adapters.kubernetes.manifests.network import make_own_service, make_port_slot
from gpudev.adapters.kubernetes.manifests.pod import SSH_PORT, PodOrder, make_pod
from gpudev.adapters.kubernetes.manifests.secret import Keys, make_host_key, make_secret
from gpudev.adapters.kubernetes.startup import make_startup, startup_name
from gpudev.domain.server import ServerSpec
from tests.support.kubernetes_backend import NODE, make_spec

_PROXY_SECONDS = 2.5
"""kube-proxy looks for new Services once a second, and two seconds after it last had work to do."""
_ANSWER_SECONDS = 180.0
_CONNECT_SECONDS = 0.05
"""Who knocks often is soon refused in silence; the kernel would then ask again after a second only."""
_PAUSE = 0.005
_PAUSE_OF_MANY = 0.1
"""A hundred that knock without rest would take the CPU that their pods need to start."""
_SSHD = "ssh-keygen -A; mkdir -p /run/sshd; exec /usr/sbin/sshd -D -e"


@dataclass(frozen=True, slots=True)
class ByHand:
    client: KubernetesClient
    config: KubernetesConfig
    node_address: str

    @property
    def kinds(self) -> OwnKinds:
        return OwnKinds(self.config.namespace)

    async def prepare(self) -> None:
        await self._create(self.kinds.config_maps, make_startup(self.config.namespace))

    async def time_ours(self) -> float:
        service = await self._make_waiting_service()
        spec = replace(make_spec(), port_slot=name_of(service))
        began = time.perf_counter()
        pod = await self._make_ours(spec, service)
        await self._hear(service)
        return await self._end(began, pod, service)

    async def time_bare(self) -> float:
        service = await self._make_waiting_service()
        began = time.perf_counter()
        pod = await self._create(self.kinds.pods, self._bare_pod(name_of(service)))
        await self._hear(service)
        return await self._end(began, pod, service)

    async def time_usual(self) -> float:
        name = _new_name()
        manifest = self._bare_pod(name)
        probe = {"tcpSocket": {"port": SSH_PORT}, "periodSeconds": 1}
        manifest["spec"]["containers"][0]["readinessProbe"] = probe
        own = make_port_slot(name, self.config.namespace)
        own["spec"]["publishNotReadyAddresses"] = False
        began = time.perf_counter()
        pod, service = await asyncio.gather(
            self._create(self.kinds.pods, manifest), self._create(self.kinds.services, own)
        )
        await self._hear(service)
        return await self._end(began, pod, service)

    async def time_many(self, count: int) -> float:
        """So many of ours at once, each with a Service made for it, until the last one answers."""
        specs = [make_spec() for _ in range(count)]
        began = time.perf_counter()
        made = await asyncio.gather(*(self._make_whole(spec) for spec in specs))
        seconds = time.perf_counter() - began
        await asyncio.gather(*(self._end(began, pod, service) for pod, service in made))
        return seconds

    async def _make_whole(self, spec: ServerSpec) -> tuple[Json, Json]:
        pod, service = await self.make_objects(spec)
        try:
            await self._hear(service, _PAUSE_OF_MANY)
        except TimeoutError as error:
            now = await self.client.find(self.kinds.pods, name_of(pod))
            raise RuntimeError(f"{name_of(pod)} never answered: {now and now['status']}") from error
        return pod, service

    async def make_objects(self, spec: ServerSpec) -> tuple[Json, Json]:
        """A pod and its Service, with all that belongs to them."""
        manifest = make_own_service(spec, self.config.namespace)
        service = await self._create(self.kinds.services, manifest)
        return await self._make_ours(spec, service), service

    async def _make_ours(self, spec: ServerSpec, service: Json) -> Json:
        key = make_host_key()
        secret = make_secret(spec, self.config.namespace, Keys((key,)), service)
        await self._create(self.kinds.secrets, secret)
        order = PodOrder(spec, self.config, name_of(service), spec.name, startup_name(), key.public)
        return await self._create(self.kinds.pods, make_pod(order))

    async def _make_waiting_service(self) -> Json:
        manifest = make_port_slot(_new_name(), self.config.namespace)
        service = await self._create(self.kinds.services, manifest)
        await asyncio.sleep(_PROXY_SECONDS)
        return service

    def _bare_pod(self, slot: str) -> Json:
        container = {
            "name": "dev",
            "image": self.config.image,
            "imagePullPolicy": self.config.pull_policy.value,
            "command": ["sh", "-c", _SSHD],
        }
        spec = {
            "containers": [container],
            "nodeSelector": {"kubernetes.io/hostname": NODE},
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 10,
        }
        metadata = {"name": slot, "labels": {PORT_SLOT: slot}}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    async def _create(self, kind: Kind, manifest: Json) -> Json:
        """It may have been made by a try whose answer came too late."""
        try:
            return await self.client.create(kind, manifest)
        except AlreadyExists as error:
            found = await self.client.find(kind, manifest["metadata"]["name"])
            if found is None:
                raise RuntimeError("It was there, and is not any more.") from error
            return found

    async def _hear(self, service: Json, pause: float = _PAUSE) -> None:
        port: int = service["spec"]["ports"][0]["nodePort"]
        await hear_first_byte(self.node_address, port, pause)

    async def _end(self, began: float, pod: Json, service: Json) -> float:
        """The time up to now; then nothing is left of it."""
        seconds = time.perf_counter() - began
        await self.client.delete(self.kinds.services, name_of(service), uid_of(service))
        await self.client.delete(self.kinds.pods, name_of(pod), uid_of(pod))
        while await self.client.find(self.kinds.pods, name_of(pod)) is not None:  # noqa: ASYNC110 - in the cluster
            await asyncio.sleep(0.1)
        return seconds


async def hear_first_byte(host: str, port: int, pause: float = _PAUSE) -> None:
    """Knock until something is said."""
    async with asyncio.timeout(_ANSWER_SECONDS):
        while not await _says_something(host, port):  # noqa: ASYNC110 - what answers is elsewhere
            await asyncio.sleep(pause)


async def _says_something(host: str, port: int) -> bool:
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(1):
            async with asyncio.timeout(_CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(host, port)
            return bool(await reader.read(1))
    except (OSError, TimeoutError):
        return False
    finally:
        if writer is not None:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


def _new_name() -> str:
    return f"by-hand-{secrets.token_hex(4)}"
