"""The objects that we make: as people have read them, and as Kubernetes defines them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from gpudev.adapters.kubernetes.api_objects import Json
from gpudev.adapters.kubernetes.config import ClaimConfig, Homes, KubernetesConfig, Reach, UserNamespaces
from gpudev.adapters.kubernetes.manifests.environment import make_environment
from gpudev.adapters.kubernetes.manifests.network import (
    make_egress_policy,
    make_gang_policy,
    make_gang_service,
    make_ingress_policy,
    make_member_service,
    make_own_service,
    make_port_slot,
)
from gpudev.adapters.kubernetes.manifests.pod import make_pod
from gpudev.adapters.kubernetes.manifests.resources import cpu_quantity, memory_quantity, shared_memory
from gpudev.adapters.kubernetes.manifests.secret import HostKey, Keys, make_secret
from gpudev.adapters.kubernetes.manifests.storage import (
    make_claim,
    make_home_claim,
    make_home_volume,
    make_snapshot,
)
from gpudev.adapters.kubernetes.startup import make_startup
from gpudev.domain.catalogue import DEFAULT_CATALOGUE, Share
from gpudev.domain.disk import DiskId, SnapshotId, VolumeId
from gpudev.domain.names import NodeName
from gpudev.domain.server import HomeVolume, ServerSpec
from gpudev.domain.volume import DiskTags, SnapshotSpec, VolumeSpec
from tests.support.golden import check_golden
from tests.support.kubernetes_values import CONFIG, NAMESPACE, made, make_order, make_spec

ROLES = Path(__file__).parents[3] / "deploy" / "kubernetes"
VERSION = "1.33"
SLOT = made(make_port_slot("gpu-dev-slot-0a1b2c3d", NAMESPACE), uid="uid-slot")
CPU = make_spec("cpu-x86", 0, "cpu-1")

KEYS = Keys((HostKey("PRIVATE", "ssh-ed25519 AAAAHOST"),))
GANG = make_spec(gpus=16, nodes=(NodeName("h100-1"), NodeName("h100-2")))
GANG_KEYS = Keys(
    (HostKey("PRIVATE", "ssh-ed25519 AAAAHOST"), HostKey("PRIVATE1", "ssh-ed25519 AAAAHOST1")),
    HostKey("GANG", "ssh-ed25519 AAAAGANG"),
)
GANG_SERVICE = made(make_gang_service(GANG, NAMESPACE), uid="uid-gang")

EBS = HomeVolume(VolumeId("vol-0a1b2c3d"), "work", 100, "us-east-2a")
WITH_DISK = make_spec(home=EBS, notice="Read this.")
CLAIMS = ClaimConfig(NAMESPACE, "fast", "fast-snapshots")
TAGS = DiskTags("ada", "work", DiskId("d15c0000-0000-4000-8000-000000000001"))

MANIFESTS: dict[str, Json] = {
    "pod": make_pod(make_order()),
    "pod_cpu": make_pod(make_order(CPU, has_user_namespaces=True)),
    "pod_probed": make_pod(make_order(config=replace(CONFIG, reach=Reach.PROBE, pull_secrets=("registry",)))),
    "port_slot": make_port_slot("gpu-dev-slot-0a1b2c3d", NAMESPACE),
    "own_service": make_own_service(make_spec(), NAMESPACE),
    "secret": make_secret(make_spec(), NAMESPACE, KEYS, SLOT),
    "gang_pod": make_pod(make_order(GANG, rank=1, incarnation="uid-gang")),
    "gang_secret": make_secret(GANG, NAMESPACE, GANG_KEYS, GANG_SERVICE),
    "gang_service": make_gang_service(GANG, NAMESPACE),
    "member_service": make_member_service(GANG, 1, NAMESPACE, GANG_SERVICE),
    "gang_policy": make_gang_policy(GANG, NAMESPACE, GANG_SERVICE),
    "pod_with_disk": make_pod(make_order(WITH_DISK, home="gpu-dev-volume-1")),
    "disk_claim": make_claim(VolumeSpec("disk/first", TAGS, 100), CLAIMS, None),
    "disk_copy": make_claim(
        VolumeSpec("disk/copy", TAGS, 100, source_snapshot_id=SnapshotId("gpu-dev-snapshot-1")),
        CLAIMS,
        NodeName("h100-1"),
    ),
    "ebs_volume": make_home_volume(WITH_DISK, EBS, CONFIG),
    "ebs_claim": make_home_claim(WITH_DISK, EBS, CONFIG, SLOT),
    "ingress_policy": make_ingress_policy(CONFIG),
    "egress_policy": make_egress_policy(replace(CONFIG, closed_networks=("10.9.0.0/16",))),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_is_as_people_have_read_it(name: str) -> None:
    check_golden(f"kubernetes/{name}.yaml", yaml.safe_dump(MANIFESTS[name], sort_keys=False).rstrip())


@pytest.mark.parametrize("name", [*MANIFESTS, "startup"])
def test_a_manifest_fits_the_schema(name: str) -> None:
    manifest = MANIFESTS.get(name) or make_startup(NAMESPACE)
    kubernetes_validate.validate(manifest, VERSION, strict=True)


def test_a_snapshot_is_as_people_have_read_it() -> None:
    """Its kind is no part of Kubernetes itself, so there is no schema to hold it against."""
    spec = SnapshotSpec("disk/1", VolumeId("gpu-dev-volume-1"), TAGS)
    text = yaml.safe_dump(make_snapshot(spec, CLAIMS, "us-east-2a"), sort_keys=False)
    check_golden("kubernetes/disk_snapshot.yaml", text.rstrip())


def test_a_volume_of_ebs_is_kept_whatever_happens_to_its_claim() -> None:
    spec = MANIFESTS["ebs_volume"]["spec"]
    assert spec["persistentVolumeReclaimPolicy"] == "Retain"
    assert (spec["csi"]["volumeHandle"], spec["storageClassName"]) == (EBS.volume_id, "")


@pytest.mark.parametrize(
    "manifest",
    [
        one
        for file in ("rbac.yaml", "rbac-disks.yaml")
        for one in yaml.safe_load_all((ROLES / file).read_text())
    ],
    ids=lambda one: f"{one['kind']} {one['metadata']['name']}",
)
def test_the_roles_fit_the_schema_and_nobody_may_list_secrets(manifest: dict[str, Any]) -> None:
    kubernetes_validate.validate(manifest, VERSION, strict=True)
    for rule in manifest.get("rules", ()):
        assert "*" not in (*rule["verbs"], *rule["resources"])
        if "secrets" in rule["resources"]:
            assert not {"list", "watch", "deletecollection"} & set(rule["verbs"])


def test_no_pod_can_reach_the_api_server_by_a_token_or_gets_more_capabilities_than_it_needs() -> None:
    spec = make_pod(make_order())["spec"]
    (container,) = spec["containers"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert "SYS_ADMIN" not in container["securityContext"]["capabilities"]["add"]
    assert "privileged" not in container["securityContext"]


def test_a_pod_on_a_profiling_node_may_profile() -> None:
    (container,) = make_pod(make_order(is_profiling=True))["spec"]["containers"]
    assert "SYS_ADMIN" in container["securityContext"]["capabilities"]["add"]


PODS = [name for name, manifest in MANIFESTS.items() if manifest["kind"] == "Pod"]


@pytest.mark.threat("one pod fills the disk of its node")
@pytest.mark.parametrize("name", PODS)
def test_whatever_a_pod_writes_to_its_node_has_a_limit(name: str) -> None:
    spec = MANIFESTS[name]["spec"]
    (container,) = spec["containers"]
    limits, requests = container["resources"]["limits"], container["resources"]["requests"]
    assert limits["ephemeral-storage"] == requests["ephemeral-storage"], "no disk is given twice"
    unlimited = [
        volume["name"]
        for volume in spec["volumes"]
        if "emptyDir" in volume and "sizeLimit" not in volume["emptyDir"]
    ]
    assert unlimited == []


@pytest.mark.parametrize("gpus, expected", [(1, 90), (2, 180), (8, 720)])
def test_a_pod_gets_the_part_of_the_disk_that_goes_with_its_gpus(gpus: int, expected: int) -> None:
    (container,) = make_pod(make_order(make_spec(gpus=gpus)))["spec"]["containers"]
    assert container["resources"]["limits"]["ephemeral-storage"] == f"{expected}Gi"


def test_no_volume_may_hold_more_than_the_pod() -> None:
    volumes = make_pod(make_order(make_spec(gpus=1), node_storage_gib=100))["spec"]["volumes"]
    limits = {volume["name"]: volume["emptyDir"]["sizeLimit"] for volume in volumes if "emptyDir" in volume}
    assert (limits["home"], limits["workspace"]) == ("10Gi", "10Gi")


@pytest.mark.parametrize("gpus, storage", [(1, "1Gi"), (50, "40Gi"), (100, "80Gi")])
def test_the_part_of_a_disk_is_that_of_the_gpus_which_the_node_reports(gpus: int, storage: str) -> None:
    order = make_order(make_spec(gpus=gpus), node_storage_gib=100, node_slots=100)
    (container,) = make_pod(order)["spec"]["containers"]
    assert container["resources"]["requests"]["ephemeral-storage"] == storage


def test_where_a_node_does_not_report_its_disk_nothing_is_requested_and_there_is_a_limit() -> None:
    """A request that the scheduler cannot fulfil would keep the pod waiting for ever."""
    (container,) = make_pod(make_order(node_storage_gib=0))["spec"]["containers"]
    assert container["resources"]["limits"]["ephemeral-storage"] == "170Gi"
    assert "ephemeral-storage" not in container["resources"]["requests"]


@pytest.mark.threat("an escape from a container")
@pytest.mark.parametrize(
    "choice, spec, changes, is_mapped",
    [
        ("auto", CPU, {"has_user_namespaces": True}, True),
        ("auto", CPU, {"has_user_namespaces": False}, False),
        ("auto", make_spec(), {"has_user_namespaces": True}, False),
        ("auto", CPU, {"has_user_namespaces": True, "home": "a-claim"}, False),
        ("always", make_spec(), {}, True),
        ("never", CPU, {"has_user_namespaces": True}, False),
    ],
    ids=["supported", "not supported", "with GPUs", "on a claim", "always", "never"],
)
def test_root_in_a_pod_is_not_root_on_its_node_where_that_works(
    choice: str, spec: ServerSpec, changes: dict[str, Any], *, is_mapped: bool
) -> None:
    config = replace(CONFIG, user_namespaces=UserNamespaces(choice))
    pod = make_pod(make_order(spec, config, **changes))["spec"]
    assert (pod.get("hostUsers") is False) == is_mapped


def test_a_home_on_ebs_can_be_mapped() -> None:
    config = replace(CONFIG, homes=Homes.EBS)
    pod = make_pod(make_order(CPU, config, home="a-claim", has_user_namespaces=True))
    assert pod["spec"]["hostUsers"] is False


def test_what_the_user_set_is_in_the_secret_and_nowhere_else() -> None:
    spec = make_spec(env_vars={"TOKEN": "hunter2"})
    assert "hunter2" not in str(make_pod(make_order(spec)))
    assert make_secret(spec, NAMESPACE, KEYS, SLOT)["stringData"]["env.TOKEN"] == "hunter2"


def test_the_user_replaces_a_default_and_no_variable_comes_twice() -> None:
    spec = make_spec(env_vars={"OMP_NUM_THREADS": "3"})
    names = [variable["name"] for variable in make_environment(spec, "secret")]
    assert len(set(names)) == len(names)
    assert make_secret(spec, NAMESPACE, KEYS, SLOT)["stringData"]["env.OMP_NUM_THREADS"] == "3"


def test_without_gpus_none_is_visible() -> None:
    variables = {one["name"]: one.get("value") for one in make_environment(CPU, "secret")}
    assert variables["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert "NVIDIA_VISIBLE_DEVICES" not in {one["name"] for one in make_environment(make_spec(), "secret")}


def test_kubernetes_puts_nothing_into_our_values() -> None:
    variables = {
        one["name"]: one.get("value") for one in make_environment(make_spec(username="a$(HOME)"), "secret")
    }
    assert variables["GPU_DEV_USER"] == "a$$(HOME)"


@pytest.mark.parametrize(
    "gibibytes, size",
    [(256, "128Gi"), (10, "8Gi"), (4, "4Gi"), (Fraction(1, 16), "64Mi")],
    ids=["half the share", "at least what NCCL wants", "never more than the share", "a tiny type"],
)
def test_shared_memory_follows_the_share(gibibytes: Fraction | int, size: str) -> None:
    assert shared_memory(Share(1, 1, gibibytes, gibibytes)) == size


def test_quantities_are_exact() -> None:
    assert [cpu_quantity(one) for one in (2, Fraction(1, 100), Fraction(3, 2))] == ["2", "10m", "1500m"]
    assert [memory_quantity(one) for one in (2, Fraction(1, 16))] == ["2Gi", "64Mi"]


def test_a_slice_is_asked_for_by_its_own_name() -> None:
    slices = replace(DEFAULT_CATALOGUE.get("a100"), resource="nvidia.com/mig-1g.5gb")
    config = KubernetesConfig(catalogue=replace(DEFAULT_CATALOGUE, types=(slices,)), image="dev:1")
    (container,) = make_pod(make_order(make_spec("a100", 1), config))["spec"]["containers"]
    assert container["resources"]["limits"]["nvidia.com/mig-1g.5gb"] == "1"
