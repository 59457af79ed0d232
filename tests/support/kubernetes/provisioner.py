"""Storage of the test cluster: a folder is a volume, and a copy of it a snapshot.

It stands for a CSI driver with its provisioner, resizer and snapshotter, as far as users of their objects can
tell: it makes what claims and snapshots ask for, ties a volume to one node, and removes bytes when, and only
when, the policy of their object is Delete and what they belong to is gone. Run as a program, it does so
until it is ended.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpudev.adapters.kubernetes.api_objects import (
    PERSISTENT_VOLUMES,
    SNAPSHOT_CLASSES,
    SNAPSHOT_CONTENTS,
    Json,
    Kind,
    annotations_of,
    name_of,
    uid_of,
)
from gpudev.adapters.kubernetes.api_objects import STORAGE_CLASSES as CLASSES
from gpudev.adapters.kubernetes.client import AlreadyExists, KubernetesClient, connect
from gpudev.domain.catalogue import parse_quantity
from gpudev.domain.errors import Unavailable

DRIVER = "folders.gpu-dev.test"
NODE_LABEL = "kubernetes.io/hostname"
FIRST_NODE = "node-a"
_CLAIMS = Kind("api/v1", "persistentvolumeclaims")
_SNAPSHOTS = Kind("apis/snapshot.storage.k8s.io/v1", "volumesnapshots")
_PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything of the whole cluster, by name where that is enough."""

    claims: list[Json]
    volumes: Mapping[str, Json]
    snapshots: list[Json]
    contents: Mapping[str, Json]
    classes: Mapping[str, Json]
    snapshot_classes: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Provisioner:
    client: KubernetesClient
    folder: Path

    async def step(self) -> None:
        seen = await self._look()
        for claim in seen.claims:
            await self._provision(claim, seen)
            await self._grow(claim, seen)
        for snapshot in seen.snapshots:
            await self._take_snapshot(snapshot, seen)
        await self._remove_volumes(seen)
        await self._remove_contents(seen)

    async def _look(self) -> Seen:
        async def by_name(kind: Kind) -> dict[str, Json]:
            return {name_of(item): item for item in (await self.client.list_all(kind))[0]}

        return Seen(
            claims=(await self.client.list_all(_CLAIMS))[0],
            volumes=await by_name(PERSISTENT_VOLUMES),
            snapshots=(await self.client.list_all(_SNAPSHOTS))[0],
            contents=await by_name(SNAPSHOT_CONTENTS),
            classes=await by_name(CLASSES),
            snapshot_classes=await by_name(SNAPSHOT_CLASSES),
        )

    async def _provision(self, claim: Json, seen: Seen) -> None:
        kind = seen.classes.get(claim["spec"].get("storageClassName") or "")
        node = annotations_of(claim).get("volume.kubernetes.io/selected-node", _node_at_once(kind))
        if kind is None or kind["provisioner"] != DRIVER or claim["spec"].get("volumeName") or not node:
            return
        if "deletionTimestamp" in claim["metadata"] or f"pvc-{uid_of(claim)}" in seen.volumes:
            return
        place = self.folder / "volumes" / f"pvc-{uid_of(claim)}"
        source = claim["spec"].get("dataSource")
        content = _find_content(claim, source, seen) if source else None
        if source and content is None:
            return
        _copy(Path(content["spec"]["source"]["snapshotHandle"]) if content else None, place)
        volume = _make_volume(claim, place, node, kind["reclaimPolicy"])
        await self._create(PERSISTENT_VOLUMES, volume)

    async def _grow(self, claim: Json, seen: Seen) -> None:
        volume = seen.volumes.get(claim["spec"].get("volumeName") or "")
        if volume is None or not _is_ours(volume) or claim["status"]["phase"] != "Bound":
            return
        wanted = claim["spec"]["resources"]["requests"]["storage"]
        capacity = {"capacity": {"storage": wanted}}
        if parse_quantity(claim["status"]["capacity"]["storage"]) < parse_quantity(wanted):
            await self.client.patch(PERSISTENT_VOLUMES, name_of(volume), {"spec": capacity})
            own = Kind(_CLAIMS.group, _CLAIMS.plural, claim["metadata"]["namespace"])
            await self.client.patch(own, f"{name_of(claim)}/status", {"status": capacity})

    async def _take_snapshot(self, snapshot: Json, seen: Seen) -> None:
        if (snapshot.get("status") or {}).get("readyToUse") or "deletionTimestamp" in snapshot["metadata"]:
            return
        volume = _find_source(snapshot, seen)
        kind = seen.snapshot_classes.get(snapshot["spec"].get("volumeSnapshotClassName", ""))
        if volume is None or kind is None or kind["driver"] != DRIVER:
            return
        place = self.folder / "snapshots" / uid_of(snapshot)
        _copy(Path(volume["spec"]["hostPath"]["path"]), place)
        content = _make_content(snapshot, place, kind["deletionPolicy"])
        await self._create(SNAPSHOT_CONTENTS, content)
        status = {
            "boundVolumeSnapshotContentName": name_of(content),
            "creationTime": datetime.now(UTC).isoformat(),
            "readyToUse": True,
            "restoreSize": volume["spec"]["capacity"]["storage"],
        }
        own = Kind(_SNAPSHOTS.group, _SNAPSHOTS.plural, snapshot["metadata"]["namespace"])
        await self.client.patch(own, f"{name_of(snapshot)}/status", {"status": status})

    async def _remove_volumes(self, seen: Seen) -> None:
        for volume in filter(_is_ours, seen.volumes.values()):
            is_released = (volume.get("status") or {}).get("phase") == "Released"
            if is_released and volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete":
                _remove(Path(volume["spec"]["hostPath"]["path"]))
                await self.client.delete(PERSISTENT_VOLUMES, name_of(volume), uid_of(volume))

    async def _remove_contents(self, seen: Seen) -> None:
        present = {uid_of(snapshot) for snapshot in seen.snapshots}
        for content in seen.contents.values():
            spec = content["spec"]
            is_left = spec["volumeSnapshotRef"]["uid"] not in present
            if spec["driver"] == DRIVER and is_left and spec["deletionPolicy"] == "Delete":
                _remove(Path(spec["source"]["snapshotHandle"]))
                await self.client.delete(SNAPSHOT_CONTENTS, name_of(content), uid_of(content))

    async def _create(self, kind: Kind, manifest: Json) -> None:
        try:
            await self.client.create(kind, manifest)
        except AlreadyExists:
            return


def _node_at_once(kind: Json | None) -> str:
    """For a class that does not wait for pods."""
    return FIRST_NODE if kind and kind["volumeBindingMode"] == "Immediate" else ""


def _is_ours(volume: Json) -> bool:
    return annotations_of(volume).get("pv.kubernetes.io/provisioned-by") == DRIVER


def _find_content(claim: Json, source: Json, seen: Seen) -> Json | None:
    place = (claim["metadata"]["namespace"], source["name"])
    for snapshot in seen.snapshots:
        status = snapshot.get("status") or {}
        if (snapshot["metadata"]["namespace"], name_of(snapshot)) == place and status.get("readyToUse"):
            return seen.contents.get(status["boundVolumeSnapshotContentName"])
    return None


def _find_source(snapshot: Json, seen: Seen) -> Json | None:
    place = (snapshot["metadata"]["namespace"], snapshot["spec"]["source"]["persistentVolumeClaimName"])
    for claim in seen.claims:
        if (claim["metadata"]["namespace"], name_of(claim)) == place:
            volume = seen.volumes.get(claim["spec"].get("volumeName") or "")
            return volume if volume is not None and _is_ours(volume) else None
    return None


def _make_volume(claim: Json, place: Path, node: str, policy: str) -> Json:
    expression = {"key": NODE_LABEL, "operator": "In", "values": [node]}
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": uid_of(claim)}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": place.name,
            "annotations": {"pv.kubernetes.io/provisioned-by": DRIVER},
        },
        "spec": {
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "accessModes": claim["spec"]["accessModes"],
            "persistentVolumeReclaimPolicy": policy,
            "storageClassName": claim["spec"]["storageClassName"],
            "claimRef": {
                **reference,
                "namespace": claim["metadata"]["namespace"],
                "name": name_of(claim),
            },
            "hostPath": {"path": str(place), "type": "Directory"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
        },
    }


def _make_content(snapshot: Json, place: Path, policy: str) -> dict[str, Any]:
    return {
        "apiVersion": "snapshot.storage.k8s.io/v1",
        "kind": "VolumeSnapshotContent",
        "metadata": {"name": f"snapcontent-{uid_of(snapshot)}"},
        "spec": {
            "driver": DRIVER,
            "deletionPolicy": policy,
            "source": {"snapshotHandle": str(place)},
            "volumeSnapshotRef": {
                "namespace": snapshot["metadata"]["namespace"],
                "name": name_of(snapshot),
                "uid": uid_of(snapshot),
            },
        },
    }


def _copy(source: Path | None, place: Path) -> None:
    """Whole or not at all."""
    if place.exists():
        return
    unfinished = place.with_name(f".{place.name}")
    _remove(unfinished)
    place.parent.mkdir(parents=True, exist_ok=True)
    if source is None:
        unfinished.mkdir()
    else:
        subprocess.run(["cp", "--archive", str(source), str(unfinished)], check=True)
    unfinished.rename(place)


def _remove(place: Path) -> None:
    if place.exists():
        shutil.rmtree(place)


async def serve(kubeconfig: str, folder: Path) -> None:
    async with connect(kubeconfig) as client:
        provisioner = Provisioner(client, folder)
        while True:
            try:
                await provisioner.step()
            except Unavailable as error:
                print(error.message, file=sys.stderr, flush=True)  # noqa: T201 - its log
            await asyncio.sleep(_PAUSE_SECONDS)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2])))
