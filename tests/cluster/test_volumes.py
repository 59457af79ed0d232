"""Claims of a real Kubernetes as the storage of disks, under the roles that the controllers have.

The API server, the scheduler and the binding of claims are real. What a driver does is done by a program of
the tests, see `tests/support/kubernetes/provisioner.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpudev.adapters.kubernetes.client import connect
from gpudev.adapters.kubernetes.config import ClaimConfig
from gpudev.adapters.kubernetes.disks.volumes import KubernetesVolumes
from gpudev.domain.errors import StorageRefused, StorageUnavailable
from gpudev.domain.volume import DiskTags, VolumePhase, VolumeSpec
from gpudev.ports.volumes import Volumes
from tests.contract.volume_rules import DISK, FIRST, TAGS, VolumeRules, eventually, make_snapshot, make_volume
from tests.support.kubernetes.access import Access
from tests.support.kubernetes.cluster import Cluster
from tests.support.kubernetes.images import PAUSE
from tests.support.kubernetes.provisioner import NODE_LABEL
from tests.support.kubernetes.storage import CLASS, CLASS_AT_ONCE, DELETING_CLASS, SNAPSHOT_CLASS
from tests.support.kubernetes_roles import CONTROLLER, applied_roles

pytestmark = pytest.mark.anyio


@pytest.fixture
def config(cluster: Cluster, namespace: str) -> ClaimConfig:
    cluster.storage.start(cluster.access)
    return ClaimConfig(namespace, CLASS_AT_ONCE, SNAPSHOT_CLASS, NODE_LABEL)


@pytest.fixture
async def volumes(access: Access, config: ClaimConfig) -> AsyncIterator[KubernetesVolumes]:
    with applied_roles(access, config.namespace, disks=True):
        kubeconfig = access.kubeconfig_for(CONTROLLER, config.namespace)
        async with connect(str(kubeconfig)) as client:
            yield KubernetesVolumes(client, config)


@pytest.fixture
async def waiting(access: Access, config: ClaimConfig) -> AsyncIterator[KubernetesVolumes]:
    """Of a class whose volumes are made where their first pod is."""
    with applied_roles(access, config.namespace, disks=True):
        kubeconfig = access.kubeconfig_for(CONTROLLER, config.namespace)
        async with connect(str(kubeconfig)) as client:
            yield KubernetesVolumes(client, replace(config, storage_class=CLASS))


class TestRules(VolumeRules):
    pass


def make_pod(access: Access, namespace: str, claim: str, node: str = "node-b") -> None:
    volume = {"name": "home", "persistentVolumeClaim": {"claimName": claim}}
    container = {
        "name": "pause",
        "image": PAUSE.name,
        "imagePullPolicy": "Never",
        "volumeMounts": [{"name": "home", "mountPath": "/home/dev"}],
    }
    spec = {
        "containers": [container],
        "volumes": [volume],
        "nodeSelector": {NODE_LABEL: node},
        "terminationGracePeriodSeconds": 0,
    }
    metadata = {"name": "holder", "labels": {"gpu-dev/home": claim}}
    access.create([{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}], namespace)
    access.wait("pod/holder", "condition=Ready", namespace)


def folder_of(access: Access, namespace: str, claim: str) -> Path:
    bound = access.get("pvc", claim, f"--namespace={namespace}")["spec"]["volumeName"]
    return Path(access.get("pv", bound)["spec"]["hostPath"]["path"])


def folder_of_snapshot(access: Access, content: str) -> Path:
    return Path(access.get("volumesnapshotcontent", content)["spec"]["source"]["snapshotHandle"])


async def test_a_claim_that_nobody_mounted_is_blank_and_then_where_its_pod_is(
    waiting: KubernetesVolumes, access: Access, namespace: str
) -> None:
    made = await make_volume(waiting)
    [blank] = (await waiting.find(DISK, None)).volumes
    assert (blank.phase, blank.is_blank, blank.zone, blank.attached_to) == (VolumePhase.READY, True, "", "")
    make_pod(access, namespace, made)
    for [held] in ((await waiting.find(DISK, None)).volumes, await waiting.list_volumes()):
        assert (held.is_blank, held.zone, held.attached_to) == (False, "node-b", "pod holder")
    with pytest.raises(StorageRefused, match="pod holder"):
        await waiting.delete_volume(made)


async def test_a_copy_has_the_bytes_and_is_made_where_its_source_is_without_a_pod(
    waiting: KubernetesVolumes, access: Access, namespace: str
) -> None:
    made = await make_volume(waiting)
    make_pod(access, namespace, made)
    (folder_of(access, namespace, made) / "file").write_text("words")
    snapshot = await make_snapshot(waiting, made)
    (folder_of(access, namespace, made) / "file").write_text("other words")
    await make_volume(waiting, VolumeSpec("copy", TAGS, 20, source_snapshot_id=snapshot))
    [copy] = [one for one in (await waiting.find(DISK, None)).volumes if one.source_snapshot_id]
    assert (copy.phase, copy.zone, copy.is_blank) == (VolumePhase.READY, "node-b", False)
    assert (folder_of(access, namespace, copy.volume_id) / "file").read_text() == "words"


async def test_bytes_outlive_a_claim_and_a_snapshot_that_somebody_deletes(
    volumes: KubernetesVolumes, access: Access, namespace: str, cluster: Cluster
) -> None:
    made = await make_volume(volumes)
    folder = folder_of(access, namespace, made)
    (folder / "file").write_text("words")
    snapshot = await make_snapshot(volumes, made)
    status = access.get("volumesnapshot", snapshot, f"--namespace={namespace}")["status"]
    kept = folder_of_snapshot(access, status["boundVolumeSnapshotContentName"])
    bound = access.get("pvc", made, f"--namespace={namespace}")["spec"]["volumeName"]
    access.kubectl("delete", "volumesnapshot", snapshot, f"--namespace={namespace}")
    access.kubectl("delete", "pvc", made, f"--namespace={namespace}")
    access.wait(f"pv/{bound}", "jsonpath={.status.phase}=Released")
    # What another claim gets was made after both were gone.
    await make_volume(volumes, replace(FIRST, token="later", tags=replace(TAGS, disk_name="later")))
    assert (folder / "file").read_text() == "words"
    assert (kept / "file").read_text() == "words"


async def test_a_claim_that_somebody_deleted_is_made_again_by_hand_and_has_its_bytes(
    volumes: KubernetesVolumes, access: Access, namespace: str
) -> None:
    made = await make_volume(volumes)
    (folder_of(access, namespace, made) / "file").write_text("words")
    claim = access.get("pvc", made, f"--namespace={namespace}")
    bound = claim["spec"]["volumeName"]
    access.kubectl("delete", "pvc", made, f"--namespace={namespace}")
    access.wait(f"pv/{bound}", "jsonpath={.status.phase}=Released")
    assert (await volumes.find(DISK, made)).volumes == ()
    access.kubectl("patch", "pv", bound, "--type=json", '--patch=[{"op":"remove","path":"/spec/claimRef"}]')
    kept = {name: claim["metadata"][name] for name in ("name", "labels")}
    own = {
        name: text for name, text in claim["metadata"]["annotations"].items() if name.startswith("gpu-dev/")
    }
    access.create([{**claim, "metadata": {**kept, "annotations": own}, "status": {}}], namespace)
    access.wait(f"pvc/{made}", "jsonpath={.status.phase}=Bound", namespace)
    [found] = (await volumes.find(DISK, made)).volumes
    assert (found.tags, found.phase, found.is_blank) == (TAGS, VolumePhase.READY, False)
    assert (folder_of(access, namespace, made) / "file").read_text() == "words"


async def test_what_is_deleted_by_us_is_gone_with_its_bytes(
    volumes: KubernetesVolumes, access: Access, namespace: str
) -> None:
    made = await make_volume(volumes)
    folder = folder_of(access, namespace, made)
    await volumes.delete_volume(made)

    async def is_gone() -> bool:
        return not folder.exists()

    await eventually(is_gone)


async def test_a_claim_of_somebody_else_is_adopted_and_kept_and_never_deleted_before(
    volumes: Volumes, access: Access, namespace: str
) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "by-hand",
            "labels": {
                "app.kubernetes.io/managed-by": "gpu-dev",
                "app.kubernetes.io/component": "disk-volume",
            },
            "annotations": {
                "gpu-dev/user": "bob",
                "gpu-dev/disk-name": "old",
                "volume.kubernetes.io/selected-node": "node-a",
            },
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": DELETING_CLASS,
            "resources": {"requests": {"storage": "10Gi"}},
        },
    }
    foreign = {**claim, "metadata": {"name": "foreign"}}
    access.create([claim, foreign], namespace)
    access.wait("pvc/by-hand", "jsonpath={.status.phase}=Bound", namespace)
    [found] = await volumes.list_volumes()
    assert found.tags == DiskTags("bob", "old")
    await volumes.set_tags([found.volume_id], [], DiskTags("bob", "old", DISK))
    bound = access.get("pvc", "by-hand", f"--namespace={namespace}")["spec"]["volumeName"]
    assert access.get("pv", bound)["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    with pytest.raises(StorageRefused, match="not a disk of ours"):
        await volumes.delete_volume(type(found.volume_id)("foreign"))


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"storage_class": DELETING_CLASS}, "reclaimPolicy Retain"),
        ({"storage_class": "no-such-class"}, "GPU_DEV_DISK_STORAGE_CLASS"),
        ({"snapshot_class": ""}, "GPU_DEV_DISK_SNAPSHOT_CLASS"),
    ],
)
async def test_nothing_is_made_where_it_could_be_lost(
    volumes: KubernetesVolumes, config: ClaimConfig, access: Access, changes: dict[str, str], words: str
) -> None:
    kubeconfig = access.kubeconfig_for(CONTROLLER, config.namespace)
    async with connect(str(kubeconfig)) as client:
        with pytest.raises(StorageRefused) as refused:
            await KubernetesVolumes(client, replace(config, **changes)).create_volume(FIRST)
    assert words in refused.value.hint
    assert await volumes.list_volumes() == ()


async def test_an_account_without_rights_is_told_which_roles_it_needs(
    config: ClaimConfig, access: Access
) -> None:
    kubeconfig = access.kubeconfig_for("default", config.namespace)
    async with connect(str(kubeconfig)) as client:
        with pytest.raises(StorageRefused) as refused:
            await KubernetesVolumes(client, config).list_volumes()
    assert "rbac-disks.yaml" in refused.value.hint


async def test_no_answer_is_not_no_volume(config: ClaimConfig, cluster: Cluster, access: Access) -> None:
    async with connect(str(access.kubeconfig)) as client:
        cluster.control_plane.api_server.stop()
        try:
            with pytest.raises(StorageUnavailable):
                await KubernetesVolumes(client, config).list_volumes()
        finally:
            cluster.control_plane.api_server.start()
