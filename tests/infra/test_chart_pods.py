"""Every pod of the control plane: least privilege, pinned images, bounds, probes, and no secrets in sight."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.support.infra.chart import EXTERNAL_DATABASE, VALUES, Manifest, Pod, Rendering, render, selects

RENDERINGS = [*(render(values) for values in VALUES), render("generic", EXTERNAL_DATABASE)]
PODS = {
    f"{name}-{pod.owner}": pod
    for name, rendering in zip([*VALUES, "external"], RENDERINGS, strict=True)
    for pod in rendering.pods
}
every_pod = pytest.mark.parametrize("pod", PODS.values(), ids=PODS.keys())

READS_FILES_OF_THE_NODE = {"DaemonSet/gpu-dev-logs"}
"""It runs as root without any capability: the logs of a node are root's."""
ASKS_KUBERNETES = {"gpu-dev-api", "gpu-dev-controller"}
NAMES_A_SECRET = re.compile("PASSWORD|TOKEN|SECRET|DATABASE_URL|REPLICA_URL")
PINNED = re.compile(r"^\S+:(?!latest$)[\w.-]*\d[\w.-]*$")
ONCE = {"Job", "CronJob"}
GIVEN_BY_THE_OPERATOR = {("Secret", "registry-ghcr-credentials"), ("Secret", "database")}


@every_pod
def test_pod_is_no_root_and_drops_every_capability(pod: Pod) -> None:
    context = pod.spec["securityContext"]
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert context.get("runAsNonRoot", False) is (pod.owner not in READS_FILES_OF_THE_NODE)
    for container in pod.containers:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


@every_pod
def test_pod_shares_nothing_with_its_node(pod: Pod) -> None:
    assert not pod.spec.keys() & {"hostNetwork", "hostPID", "hostIPC"}
    paths = [volume for volume in pod.spec.get("volumes", ()) if "hostPath" in volume]
    assert not paths or pod.owner in READS_FILES_OF_THE_NODE


@every_pod
def test_only_who_asks_kubernetes_has_a_token_for_it(pod: Pod) -> None:
    has_token = pod.spec.get("automountServiceAccountToken", True)
    assert has_token is (pod.spec["serviceAccountName"] in ASKS_KUBERNETES)


@every_pod
def test_image_is_pinned(pod: Pod) -> None:
    for container in pod.containers:
        assert PINNED.match(container["image"]), container["image"]


@every_pod
def test_resources_are_asked_for_and_memory_is_bounded(pod: Pod) -> None:
    for container in pod.containers:
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert "memory" in container["resources"]["limits"]


@every_pod
def test_secrets_come_from_secrets(pod: Pod) -> None:
    for entry in (entry for container in pod.containers for entry in container.get("env", ())):
        if NAMES_A_SECRET.search(entry["name"]) and "value" in entry:
            # A password may be put together with an address; it is never written out.
            assert "$(POSTGRES_PASSWORD)" in entry["value"]


@every_pod
def test_a_pod_that_stays_has_probes(pod: Pod) -> None:
    if pod.owner.partition("/")[0] in ONCE or pod.owner == "DaemonSet/image-pre-puller":
        return
    (container,) = pod.spec["containers"]
    assert {"readinessProbe", "livenessProbe"} <= container.keys()


@every_pod
def test_every_volume_that_is_mounted_is_there(pod: Pod) -> None:
    owner = next(one for one in RENDERINGS[0].objects + RENDERINGS[2].objects if _is(one, pod.owner))
    claims = {claim["metadata"]["name"] for claim in owner["spec"].get("volumeClaimTemplates", ())}
    volumes = {volume["name"] for volume in pod.spec.get("volumes", ())} | claims
    mounted = {mount["name"] for one in pod.containers for mount in one.get("volumeMounts", ())}
    assert mounted == volumes


@pytest.mark.parametrize("rendering", RENDERINGS, ids=[*VALUES, "external"])
def test_every_object_that_a_pod_names_is_there(rendering: Rendering) -> None:
    made = {(one["kind"], one["metadata"]["name"]) for one in rendering.objects}
    named = {reference for pod in rendering.pods for reference in list_references(pod)}
    assert named - made <= GIVEN_BY_THE_OPERATOR


def list_references(pod: Pod) -> Iterator[tuple[str, str]]:
    """Kind and name of what the pod cannot start without, and of what it would use."""
    yield "ServiceAccount", pod.spec["serviceAccountName"]
    for container in pod.containers:
        for entry in container.get("envFrom", ()):
            yield from _name("ConfigMap", entry.get("configMapRef"), "name")
            yield from _name("Secret", entry.get("secretRef"), "name")
        for entry in container.get("env", ()):
            yield from _name("Secret", entry.get("valueFrom", {}).get("secretKeyRef"), "name")
    for volume in pod.spec.get("volumes", ()):
        yield from _name("ConfigMap", volume.get("configMap"), "name")
        yield from _name("Secret", volume.get("secret"), "secretName")
        yield from _name("PersistentVolumeClaim", volume.get("persistentVolumeClaim"), "claimName")


def _name(kind: str, reference: Manifest | None, key: str) -> Iterator[tuple[str, str]]:
    if reference is not None:
        yield kind, reference[key]


@pytest.mark.parametrize("values", VALUES)
def test_service_and_budget_lead_to_pods(values: str) -> None:
    rendering = render(values)
    for one in rendering.of_kind("Service", "PodDisruptionBudget"):
        selector = one["spec"]["selector"]
        wanted = selector.get("matchLabels", selector)
        ports = {port["targetPort"] for port in one["spec"].get("ports", ())}
        found = [pod for pod in rendering.pods if selects(wanted, pod.labels)]
        assert found, one["metadata"]["name"]
        for pod in found:
            assert ports <= {port["name"] for each in pod.containers for port in each.get("ports", ())}


@pytest.mark.parametrize("name", ["api-service", "job-processor", "ssh-proxy"])
def test_two_run_and_a_drain_leaves_one(name: str) -> None:
    rendering = render("kind")
    assert rendering.get("Deployment", name)["spec"]["replicas"] == 2
    assert rendering.get("PodDisruptionBudget", name)["spec"]["minAvailable"] == 1


def test_number_of_api_pods_belongs_to_the_autoscaler_where_there_is_one() -> None:
    rendering = render("generic")
    assert "replicas" not in rendering.get("Deployment", "api-service")["spec"]
    assert rendering.get("HorizontalPodAutoscaler", "api-service")["spec"]["minReplicas"] == 2


def test_api_without_a_database_is_taken_out_of_service_and_not_killed() -> None:
    (container,) = render("generic").get("Deployment", "api-service")["spec"]["template"]["spec"][
        "containers"
    ]
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert container["livenessProbe"]["httpGet"]["path"] == "/health"


def _is(one: Manifest, owner: str) -> bool:
    return f"{one['kind']}/{one['metadata']['name']}" == owner
