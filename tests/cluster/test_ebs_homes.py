"""Volumes of EBS as homes, on a real API server: what is bound, released and left, without a driver.

Nothing here mounts a volume: the driver of EBS needs AWS. That a PersistentVolume and a claim find each
other, are kept from harm while a pod names them, and go when it is gone, is Kubernetes' own doing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from gpudev.adapters.kubernetes.client import KubernetesClient, connect
from gpudev.adapters.kubernetes.config import Homes, KubernetesConfig
from gpudev.adapters.kubernetes.provisioner import HomeClaims
from gpudev.domain.disk import VolumeId
from gpudev.domain.server import HomeVolume, ServerSpec
from tests.support.kubernetes.access import Access
from tests.support.kubernetes_backend import make_config, make_spec
from tests.support.kubernetes_roles import CONTROLLER, applied_roles
from tests.support.machine import wait_for

pytestmark = pytest.mark.anyio

SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "slot"},
    "spec": {"ports": [{"port": 22}]},
}


@pytest.fixture
def config(access: Access, namespace: str) -> KubernetesConfig:
    return replace(make_config(access.kubeconfig, namespace), homes=Homes.EBS)


@pytest.fixture
async def client(access: Access, namespace: str) -> AsyncIterator[KubernetesClient]:
    with applied_roles(access, namespace, disks=True):
        async with connect(str(access.kubeconfig_for(CONTROLLER, namespace))) as opened:
            yield opened


@pytest.fixture
def spec() -> ServerSpec:
    return replace(make_spec(), home=HomeVolume(VolumeId("vol-0a1b2c3d"), "work", 100, "us-east-2a"))


async def test_a_home_is_bound_to_its_claim_and_goes_with_the_service_leaving_nothing(
    access: Access, namespace: str, config: KubernetesConfig, client: KubernetesClient, spec: ServerSpec
) -> None:
    access.create([SERVICE], namespace)
    service = access.get("service", "slot", f"--namespace={namespace}")
    homes = HomeClaims(client, config)
    claim = await homes.prepare(spec, service)
    assert await homes.prepare(spec, service) == claim, "a second try is the same"
    access.wait(f"pvc/{claim}", "jsonpath={.status.phase}=Bound", namespace)
    volume = access.get("pvc", claim, f"--namespace={namespace}")["spec"]["volumeName"]
    await homes.sweep()
    assert access.get("pv", volume)["status"]["phase"] == "Bound", "what is in use is not swept"

    access.kubectl("delete", "service", "slot", f"--namespace={namespace}")
    access.wait(f"pvc/{claim}", "delete", namespace)
    access.wait(f"pv/{volume}", "jsonpath={.status.phase}=Released")
    await homes.sweep()
    wait_for(lambda: not list_volumes(access, namespace), "nothing left of it")


async def test_a_disk_that_moved_gets_a_volume_and_a_claim_of_its_own(
    access: Access, namespace: str, config: KubernetesConfig, client: KubernetesClient, spec: ServerSpec
) -> None:
    access.create([SERVICE], namespace)
    service = access.get("service", "slot", f"--namespace={namespace}")
    homes = HomeClaims(client, config)
    moved = replace(spec, home=HomeVolume(VolumeId("vol-0d4e5f60"), "work", 100, "us-east-2b"))
    assert await homes.prepare(spec, service) != await homes.prepare(moved, service)
    handles = {volume["spec"]["csi"]["volumeHandle"] for volume in list_volumes(access, namespace)}
    assert handles == {"vol-0a1b2c3d", "vol-0d4e5f60"}
    for volume in list_volumes(access, namespace):
        access.kubectl("delete", "pv", volume["metadata"]["name"], "--wait=false")


def list_volumes(access: Access, namespace: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = access.get("pv", f"--selector=gpu-dev/namespace={namespace}")["items"]
    return found
