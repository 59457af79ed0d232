"""Which claim is the home of a dev server, and what is made for it.

Where disks are claims, theirs. Where they are volumes of EBS, a PersistentVolume and a claim are made for
each reservation. The claim goes with the reservation's Service, once its pod is gone; the PersistentVolume is
then `Released`, and taken away here. The volume of EBS is nobody's but the disk's.
"""

from __future__ import annotations

import asyncio

import structlog

from gpudev.adapters.kubernetes.adopting import create_or_adopt
from gpudev.adapters.kubernetes.client import KubernetesClient
from gpudev.adapters.kubernetes.config import Homes, KubernetesConfig
from gpudev.adapters.kubernetes.kinds import PERSISTENT_VOLUMES, OwnKinds
from gpudev.adapters.kubernetes.labels import (
    COMPONENT,
    FIELD_MANAGER,
    MANAGED_BY,
    NAMESPACE,
    Json,
    name_of,
    uid_of,
)
from gpudev.adapters.kubernetes.manifests.ebs import (
    COMPONENT_HOME,
    claim_name,
    make_home_claim,
    make_home_volume,
)
from gpudev.domain.errors import Unavailable
from gpudev.domain.server import ServerSpec

_log = structlog.get_logger(__name__)

_SWEEP_SECONDS = 30.0


class HomeClaims:
    def __init__(self, client: KubernetesClient, config: KubernetesConfig) -> None:
        self._client = client
        self._config = config
        self._claims = OwnKinds(config.namespace).claims

    async def prepare(self, spec: ServerSpec, service: Json) -> str:
        """The name of the claim; empty for a server without a disk."""
        home = spec.home
        if home is None:
            return ""
        if self._config.homes is Homes.CLAIMS:
            return home.volume_id
        volume = make_home_volume(spec, home, self._config)
        await create_or_adopt(self._client, PERSISTENT_VOLUMES, volume, spec.reservation_id)
        claim = make_home_claim(spec, home, self._config, service)
        await create_or_adopt(self._client, self._claims, claim, spec.reservation_id)
        return claim_name(spec, home)

    async def run(self) -> None:
        """Take away what is left of homes, for as long as we run."""
        while self._config.homes is Homes.EBS:
            try:
                await self.sweep()
            except Unavailable as error:
                _log.warning("homes_not_swept", error=error.message)
            await asyncio.sleep(_SWEEP_SECONDS)

    async def sweep(self) -> None:
        """Only the objects, and only those that say that the bytes behind them stay."""
        labels = {MANAGED_BY: FIELD_MANAGER, COMPONENT: COMPONENT_HOME, NAMESPACE: self._config.namespace}
        for volume in await self._client.find_all(PERSISTENT_VOLUMES, labels):
            if is_left_over(volume):
                await self._client.delete(PERSISTENT_VOLUMES, name_of(volume), uid_of(volume))


def is_left_over(volume: Json) -> bool:
    """Its claim is gone, so no pod can have it."""
    is_released = (volume.get("status") or {}).get("phase") == "Released"
    return is_released and volume["spec"].get("persistentVolumeReclaimPolicy") == "Retain"
