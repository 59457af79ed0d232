"""That Kubernetes never removes bytes on its own: what keeps them, and what lets one thing go."""

from __future__ import annotations

from gpudev.adapters.kubernetes.api_objects import (
    PERSISTENT_VOLUMES,
    SNAPSHOT_CLASSES,
    SNAPSHOT_CONTENTS,
    STORAGE_CLASSES,
    Json,
    name_of,
    uid_of,
)
from gpudev.adapters.kubernetes.client import KubernetesClient
from gpudev.adapters.kubernetes.config import ClaimConfig
from gpudev.domain.errors import StorageRefused

_RECLAIM = "persistentVolumeReclaimPolicy"
_DELETION = "deletionPolicy"
_KEEP, _LET_GO = "Retain", "Delete"


class Policies:
    def __init__(self, client: KubernetesClient, config: ClaimConfig) -> None:
        self._client = client
        self._config = config
        self._waiting: dict[str, bool] = {}

    async def waits_for_pods(self, name: str) -> bool:
        """How a class binds never changes, so it is asked for once."""
        if name not in self._waiting:
            found = await self._client.find(STORAGE_CLASSES, name) if name else None
            if found is None:
                return False
            self._waiting[name] = found.get("volumeBindingMode") == "WaitForFirstConsumer"
        return self._waiting[name]

    async def check_classes(self) -> None:
        """Before anything is made: from its first moment on, a volume must outlive its claim."""
        name = self._config.storage_class
        volumes = await self._client.find(STORAGE_CLASSES, name) if name else None
        if volumes is None:
            raise StorageRefused("storage_class_missing", name=name)
        if volumes.get("reclaimPolicy", _LET_GO) != _KEEP:
            raise StorageRefused("storage_class_deletes", name=name)
        await self._check_snapshot_class()

    async def _check_snapshot_class(self) -> None:
        name = self._config.snapshot_class
        snapshots = await self._client.find(SNAPSHOT_CLASSES, name) if name else None
        if snapshots is None:
            raise StorageRefused("snapshot_class_missing", name=name)
        if snapshots.get(_DELETION) != _KEEP:
            raise StorageRefused("snapshot_class_deletes", name=name)

    async def check_growth(self, claim: Json) -> None:
        if claim.get("status", {}).get("phase") != "Bound":
            raise StorageRefused("volume_never_used", id=name_of(claim))
        name = claim["spec"].get("storageClassName", "")
        found = await self._client.find(STORAGE_CLASSES, name)
        if found is None or not found.get("allowVolumeExpansion"):
            raise StorageRefused("storage_class_cannot_grow", name=name)

    async def keep_volume(self, volume: Json) -> None:
        if volume["spec"].get(_RECLAIM) != _KEEP:
            await self._set_reclaim_policy(volume, _KEEP)

    async def let_volume_go(self, volume: Json) -> None:
        """With its claim, which is deleted next; that this is to happen is on record."""
        await self._set_reclaim_policy(volume, _LET_GO)

    async def let_snapshot_go(self, snapshot: Json) -> None:
        name = (snapshot.get("status") or {}).get("boundVolumeSnapshotContentName")
        content = await self._client.find(SNAPSHOT_CONTENTS, name) if name else None
        if content is not None:
            change = {"metadata": {"uid": uid_of(content)}, "spec": {_DELETION: _LET_GO}}
            await self._client.patch(SNAPSHOT_CONTENTS, name_of(content), change)

    async def _set_reclaim_policy(self, volume: Json, policy: str) -> None:
        change = {"metadata": {"uid": uid_of(volume)}, "spec": {_RECLAIM: policy}}
        await self._client.patch(PERSISTENT_VOLUMES, name_of(volume), change)
