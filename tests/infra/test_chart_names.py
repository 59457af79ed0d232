"""Names that operators and their scripts already know, and names that our own program knows."""

from __future__ import annotations

import pytest

from gpudev.cli.commands import server
from gpudev.settings import GROUPS
from tests.support.infra.chart import VALUES, render

AWS = render("aws", ("registryCaches.ghcr.username=ada", "registryCaches.ghcr.token=t"))


@pytest.mark.parametrize(
    "name, kind, port",
    [
        ("postgres-primary", "ClusterIP", 5432),
        ("postgres-replica", "ClusterIP", 5432),
        ("api-service", "ClusterIP", 80),
        ("api-service-public", "LoadBalancer", 80),
        ("ssh-proxy", "LoadBalancer", 80),
        ("registry-ghcr", "LoadBalancer", 5000),
        ("registry-dockerhub", "LoadBalancer", 5000),
    ],
)
def test_service(name: str, kind: str, port: int) -> None:
    spec = AWS.get("Service", name, "gpu-controlplane")["spec"]
    assert spec.get("type", "ClusterIP") == kind
    assert [one["port"] for one in spec["ports"]] == [port]


@pytest.mark.parametrize(
    "owner, app",
    [
        ("Deployment/api-service", "api-service"),
        ("Deployment/job-processor", "job-processor"),
        ("Deployment/ssh-proxy", "ssh-proxy"),
        ("StatefulSet/postgres-primary", "postgres"),
        ("StatefulSet/postgres-replica", "postgres"),
        ("Deployment/registry-ghcr", "registry-cache"),
        ("Deployment/registry-dockerhub", "registry-cache"),
        ("CronJob/availability-updater", "availability-updater"),
        ("CronJob/reservation-expiry", "reservation-expiry"),
    ],
)
def test_label_app(owner: str, app: str) -> None:
    (pod,) = (pod for pod in AWS.pods if pod.owner == owner)
    assert pod.labels["app"] == app


@pytest.mark.parametrize(
    "kind, name",
    [
        ("Secret", "postgres-credentials"),
        ("Secret", "postgres-app"),
        ("Secret", "postgres-replication"),
        ("Secret", "postgres-tls"),
        ("Secret", "registry-ghcr-credentials"),
        ("ConfigMap", "registry-ghcr-config"),
        ("Namespace", "gpu-dev"),
    ],
)
def test_object(kind: str, name: str) -> None:
    assert AWS.get(kind, name)


@pytest.mark.parametrize("name", ["reservation-expiry", "availability-updater"])
def test_job_by_the_clock(name: str) -> None:
    spec = AWS.get("CronJob", name)["spec"]
    assert spec["schedule"] == "*/5 * * * *"
    assert spec["concurrencyPolicy"] == "Forbid"
    assert (spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (3, 3)
    assert spec["jobTemplate"]["spec"]["activeDeadlineSeconds"] == 600


def test_claims_are_as_large_as_operators_expect() -> None:
    assert AWS.get("PersistentVolumeClaim", "registry-ghcr")["spec"]["resources"] == {
        "requests": {"storage": "50Gi"}
    }
    for name in ("postgres-primary", "postgres-replica"):
        (claim,) = AWS.get("StatefulSet", name)["spec"]["volumeClaimTemplates"]
        assert claim["spec"]["resources"] == {"requests": {"storage": "100Gi"}}
        assert claim["spec"]["storageClassName"] == "gp3"


READ_BY_THE_DRIVER = {"PGSSLMODE", "PGSSLROOTCERT"}
"""As every client of PostgreSQL does."""


@pytest.mark.parametrize("values", VALUES)
def test_every_setting_is_one_that_the_server_reads(values: str) -> None:
    known = {str(field.validation_alias) for group in GROUPS for field in group.model_fields.values()}
    given = set(render(values).get("ConfigMap", "gpu-dev-settings")["data"])
    environment = {
        entry["name"]
        for pod in render(values).pods
        for container in pod.containers
        if container.get("args", [""])[0] == "server"
        for entry in container.get("env", ())
    }
    assert given | environment <= known | READ_BY_THE_DRIVER


@pytest.mark.parametrize("values", VALUES)
def test_every_command_is_one_that_the_program_has(values: str) -> None:
    commands = {
        container["args"][1]
        for pod in render(values).pods
        for container in pod.containers
        if container.get("args", [""])[0] == "server"
    }
    assert commands == {"api", "controller", "ssh-proxy", "migrate", "expire", "availability"}
    assert commands <= server.command.commands.keys()
