"""Who may do what in the cluster, and who may reach whom."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.support.infra.chart import NAMESPACE, VALUES, Manifest, Rendering, render, selects

RBAC = Path(__file__).parents[2] / "deploy" / "kubernetes" / "rbac.yaml"
RBAC_DISKS = RBAC.with_name("rbac-disks.yaml")
WITH_DISKS = {"aws"}
OF_DISKS = "-disks"
"""How the names of the roles end that only disks need."""
READING = {"get", "list", "watch"}
every_values_file = pytest.mark.parametrize("values", VALUES)


def read_objects(file: Path) -> list[Manifest]:
    return list(yaml.safe_load_all(file.read_text(encoding="utf-8")))


def list_rules(values: str) -> list[Manifest]:
    return [rule for role in render(values).of_kind("Role", "ClusterRole") for rule in role["rules"]]


@every_values_file
def test_roles_are_those_that_the_adapter_is_tested_with(values: str) -> None:
    files = (RBAC, RBAC_DISKS) if values in WITH_DISKS else (RBAC,)
    written = {
        (one["kind"], one["metadata"]["name"]): one["rules"]
        for file in files
        for one in read_objects(file)
        if "rules" in one
    }
    roles = render(values).of_kind("Role", "ClusterRole")
    assert {(one["kind"], one["metadata"]["name"]): one["rules"] for one in roles} == written


@every_values_file
def test_nobody_may_do_everything_or_list_secrets(values: str) -> None:
    for rule in list_rules(values):
        assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])
        if "secrets" in rule["resources"]:
            assert not {"list", "watch", "deletecollection"} & set(rule["verbs"])


@every_values_file
def test_who_sees_the_whole_cluster_changes_nothing_there(values: str) -> None:
    for role in render(values).of_kind("ClusterRole"):
        if not role["metadata"]["name"].endswith(OF_DISKS):
            assert {verb for rule in role["rules"] for verb in rule["verbs"]} <= READING


def test_homes_are_disks_on_aws_and_elsewhere_only_where_somebody_chose_their_storage() -> None:
    chosen = {
        values: settings["data"].get("GPU_DEV_DISK_STORAGE", "none")
        for values in VALUES
        for settings in [render(values).get("ConfigMap", "gpu-dev-settings")]
    }
    assert {values for values, storage in chosen.items() if storage != "none"} == WITH_DISKS
    assert chosen["aws"] == "aws"


DISKS = ("settings.GPU_DEV_DISK_STORAGE=kubernetes",)


@pytest.mark.parametrize("rendering", [render("generic", DISKS), render("aws")], ids=["generic", "aws"])
def test_with_disks_only_volumes_and_contents_of_snapshots_can_be_changed_everywhere(
    rendering: Rendering,
) -> None:
    changed = {
        resource
        for role in rendering.of_kind("ClusterRole")
        for rule in role["rules"]
        if not READING.issuperset(rule["verbs"])
        for resource in rule["resources"]
    }
    assert changed == {"persistentvolumes", "volumesnapshotcontents"}


def test_roles_of_disks_are_those_that_the_adapter_is_tested_with_and_go_to_the_control_plane() -> None:
    rendering = render("generic", DISKS)
    for written in read_objects(RBAC_DISKS):
        [found] = [
            one
            for one in rendering.of_kind(written["kind"])
            if one["metadata"]["name"] == written["metadata"]["name"]
        ]
        assert found.get("rules") == written.get("rules")
        assert found.get("roleRef") == written.get("roleRef")
        for subject in found.get("subjects", ()):
            assert subject["name"] == written["metadata"]["name"].removesuffix(OF_DISKS)
            assert subject["namespace"] == NAMESPACE


@every_values_file
def test_roles_are_given_to_accounts_of_the_control_plane_alone(values: str) -> None:
    for binding in render(values).of_kind("RoleBinding", "ClusterRoleBinding"):
        name = binding["roleRef"]["name"].removesuffix(OF_DISKS)
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}]


def test_account_of_aws_can_be_given_to_a_service_account() -> None:
    role = "arn:aws:iam::123456789012:role/controller"
    setting = f"controllers.serviceAccountAnnotations.eks\\.amazonaws\\.com/role-arn={role}"
    account = render("aws", (setting,)).get("ServiceAccount", "gpu-dev-controller")
    assert account["metadata"]["annotations"] == {"eks.amazonaws.com/role-arn": role}


@pytest.mark.parametrize("namespace", [NAMESPACE, "gpu-dev"])
def test_doors_are_closed_unless_a_policy_opens_them(namespace: str) -> None:
    spec = render("aws").get("NetworkPolicy", "closed-by-default", namespace)["spec"]
    assert spec["podSelector"] == {}
    assert "Ingress" in spec["policyTypes"]
    assert not spec.get("ingress")


def test_only_who_uses_the_database_reaches_it() -> None:
    rendering = render("aws")
    (rule,) = rendering.get("NetworkPolicy", "postgres")["spec"]["ingress"]
    let_in = [peer["podSelector"]["matchLabels"] for peer in rule["from"]]
    for pod in rendering.pods:
        names = {entry["name"] for one in pod.containers for entry in one.get("env", ())}
        uses_it = bool(names & {"POSTGRES_PASSWORD", "PGPASSWORD"})
        assert any(selects(labels, pod.labels) for labels in let_in) is uses_it, pod.owner


def test_namespace_of_dev_servers_is_privileged_only_as_far_as_the_policy_goes() -> None:
    rendering = render("aws")
    labels = rendering.get("Namespace", "gpu-dev")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"
    assert labels["pod-security.kubernetes.io/warn"] == "baseline"
    policy = rendering.get("ValidatingAdmissionPolicy", "gpu-dev-servers")["spec"]
    binding = rendering.get("ValidatingAdmissionPolicyBinding", "gpu-dev-servers")["spec"]
    assert policy["failurePolicy"] == "Fail"
    assert policy["matchConstraints"]["namespaceSelector"]["matchLabels"] == {
        "kubernetes.io/metadata.name": "gpu-dev"
    }
    assert binding["policyName"] == "gpu-dev-servers"
    assert "Deny" in binding["validationActions"]


@pytest.mark.parametrize(
    "kind, name",
    [
        ("Namespace", "gpu-dev"),
        ("Secret", "postgres-credentials"),
        ("Secret", "postgres-app"),
        ("Secret", "postgres-replication"),
        ("PersistentVolumeClaim", "postgres-backups"),
    ],
)
def test_what_people_would_miss_outlives_the_chart(kind: str, name: str) -> None:
    kept = render("aws").get(kind, name)["metadata"]["annotations"]
    assert kept["helm.sh/resource-policy"] == "keep"


def test_chart_is_upgraded_only_after_the_schema() -> None:
    job = render("aws", (), "--is-upgrade").get("Job", "migrate-1")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-upgrade"


def test_first_install_has_the_schema_beside_the_database() -> None:
    """As a hook it would wait for ever: before, there is no database; after, nothing would be ready."""
    assert "annotations" not in render("aws").get("Job", "migrate-1")["metadata"]


def test_after_a_failover_there_is_one_database_that_takes_writes() -> None:
    rendering = render("aws", ("postgres.writer=replica",))
    selector = rendering.get("Service", "postgres-primary")["spec"]["selector"]
    assert selector["gpu-dev/postgres"] == "replica"
    assert rendering.get("StatefulSet", "postgres-primary")["spec"]["replicas"] == 0
    assert rendering.get("StatefulSet", "postgres-replica")["spec"]["replicas"] == 1
