"""A few Services that wait for a dev server, so that its port is open before it is there."""

from __future__ import annotations

import asyncio
import secrets

import structlog

from gpudev.adapters.kubernetes.api_objects import OwnKinds
from gpudev.adapters.kubernetes.client import KubernetesClient
from gpudev.adapters.kubernetes.config import KubernetesConfig
from gpudev.adapters.kubernetes.facts import ServiceFacts, read_service
from gpudev.adapters.kubernetes.manifests.network import make_port_slot
from gpudev.adapters.kubernetes.view import View
from gpudev.domain.errors import Unavailable

_log = structlog.get_logger(__name__)

_PREFIX = "gpu-dev-slot-"
_RETRY_SECONDS = 5.0
_QUIET_SECONDS = 3.0
"""kube-proxy looks for changes once a second: a new Service would delay the port of a server that starts."""


class PortSlots:
    """Keeps as many waiting as there should be; `wake` says that some may have been taken."""

    def __init__(self, client: KubernetesClient, config: KubernetesConfig, view: View) -> None:
        self._client = client
        self._config = config
        self._view = view
        self._services = OwnKinds(config.namespace).services
        self._wake = asyncio.Event()

    def wake(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self.fill()
            except Unavailable as error:
                _log.warning("port_slots_not_made", error=error.message)
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            await self._wake.wait()
            await asyncio.sleep(_QUIET_SECONDS)

    async def fill(self) -> None:
        missing = self._config.port_slots - len(self._view.list_free_port_slots())
        for _ in range(missing):
            name = _PREFIX + secrets.token_hex(4)
            service = await self._client.create(self._services, make_port_slot(name, self._config.namespace))
            self._view.services.put(service)

    async def discard(self, name: str) -> None:
        """Used or not, nobody gets it again. One that is not ours to give is left alone."""
        known = self._view.find_service(name) or await self._find(name)
        if known is None or not known.is_port_slot:
            return
        await self._client.delete(self._services, name, known.uid)
        self._view.services.forget(name, known.uid, self._config.namespace)
        self.wake()

    async def _find(self, name: str) -> ServiceFacts | None:
        """Another controller may have made it, and told us nothing yet."""
        item = await self._client.find(self._services, name)
        return read_service(item) if item is not None else None
