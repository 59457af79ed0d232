"""Taking away the start-up files of versions that no dev server was started with any more.

Each version has a ConfigMap of its own, named by its content. While a new version is rolled out, controllers
of both may be at work, and those of the old one still make pods with the old files. So nothing is taken away
until this process has run for an hour, and whatever was made in the last hour stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import structlog

from gpudev.adapters.kubernetes.api_objects import (
    COMPONENT,
    FIELD_MANAGER,
    MANAGED_BY,
    Json,
    OwnKinds,
    name_of,
    uid_of,
)
from gpudev.adapters.kubernetes.client import KubernetesClient
from gpudev.adapters.kubernetes.pod_status import read_time
from gpudev.adapters.kubernetes.startup import STARTUP_COMPONENT, startup_name
from gpudev.domain.errors import Unavailable

_log = structlog.get_logger(__name__)

_SWEEP = timedelta(hours=1)
_YOUNG = timedelta(hours=1)


class OldStartups:
    def __init__(self, client: KubernetesClient, namespace: str) -> None:
        self._client = client
        self._kinds = OwnKinds(namespace)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP.total_seconds())
            try:
                await self.sweep(datetime.now(UTC))
            except Unavailable as error:
                _log.warning("old_startups_not_swept", error=error.message)

    async def sweep(self, now: datetime) -> None:
        """The files are looked at before the pods: what is made in between is young, or our own."""
        own = {MANAGED_BY: FIELD_MANAGER}
        startups = await self._client.find_all(self._kinds.config_maps, own | {COMPONENT: STARTUP_COMPONENT})
        if all(name_of(one) == startup_name() for one in startups):
            return
        pods = await self._client.find_all(self._kinds.pods, own)
        for startup in list_unused(startups, pods, now):
            _log.info("old_startup_removed", name=name_of(startup))
            await self._client.delete(self._kinds.config_maps, name_of(startup), uid_of(startup))


def list_unused(startups: Iterable[Json], pods: Iterable[Json], now: datetime) -> tuple[Json, ...]:
    """Those that are neither ours nor young nor mounted."""
    kept = {startup_name(), *(name for pod in pods for name in _mounted_by(pod))}
    return tuple(one for one in startups if name_of(one) not in kept and not _is_young(one, now))


def _mounted_by(pod: Json) -> Iterator[str]:
    for volume in pod["spec"].get("volumes") or ():
        if "configMap" in volume:
            yield str(volume["configMap"]["name"])


def _is_young(startup: Json, now: datetime) -> bool:
    """Also if it does not say when it was made."""
    created = read_time(startup["metadata"].get("creationTimestamp"))
    return created is None or now - created < _YOUNG
