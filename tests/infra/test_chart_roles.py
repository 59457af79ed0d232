"""Who connects to the chart's PostgreSQL as whom, and that nobody does so in clear."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.infra.chart import HelmRefused, Pod, render

OWNER_SECRET, APP_SECRET = "postgres-credentials", "postgres-app"
"""Names of Secrets."""


def config(values: str = "generic") -> dict[str, str]:
    (found,) = (one for one in render(values).objects if one["metadata"]["name"] == "postgres-config")
    data: dict[str, str] = found["data"]
    return data


def secrets_of(pod: Pod) -> set[str]:
    entries: list[dict[str, Any]] = [
        entry for container in pod.spec["containers"] for entry in container.get("env", ())
    ]
    return {
        entry["valueFrom"]["secretKeyRef"]["name"]
        for entry in entries
        if "secretKeyRef" in entry.get("valueFrom", {})
    }


def pod_of(owner: str) -> Pod:
    (pod,) = (pod for pod in render("generic").pods if pod.owner == owner)
    return pod


def test_connections_over_the_network_need_tls() -> None:
    rules = [line.split() for line in config()["pg_hba.conf"].splitlines() if line and line[0] != "#"]
    assert {rule[0] for rule in rules} == {"local", "hostssl"}
    assert {rule[-1] for rule in rules if rule[0] == "hostssl"} == {"scram-sha-256"}
    for kind in ("primary", "replica"):
        (container,) = pod_of(f"StatefulSet/postgres-{kind}").spec["containers"]
        environment = {entry["name"]: entry.get("value") for entry in container["env"]}
        assert environment["TLS_DIR"]
        assert environment["PGSSLMODE"] == "require"


def test_the_service_has_no_password_of_the_owner() -> None:
    users = [pod for pod in render("generic").pods if pod.labels.get("gpu-dev/uses-database")]
    service = [pod for pod in users if not {"migrate", "postgres"} & set(re.split("[/-]", pod.owner))]
    assert "Deployment/api-service" in {pod.owner for pod in service}
    for pod in service:
        assert APP_SECRET in secrets_of(pod), pod.owner
        assert OWNER_SECRET not in secrets_of(pod), pod.owner


def test_migrations_run_as_the_owner() -> None:
    assert {OWNER_SECRET, APP_SECRET} <= secrets_of(pod_of("Job/migrate-1"))


def test_an_external_database_has_an_owner_for_migrations() -> None:
    owner = "externalDatabase.ownerSecret=db-owner"
    settings = ("postgres.enabled=false", "externalDatabase.secret=db", owner)
    pods = {pod.owner: pod for pod in render("generic", settings).pods}
    assert secrets_of(pods["Job/migrate-1"]) == {"db-owner"}
    assert not secrets_of(pods["Deployment/api-service"])


def test_admins_that_are_usernames_are_refused() -> None:
    with pytest.raises(HelmRefused, match="admins"):
        render("generic", ("access.admins[0]=ada",))


def test_credentials_of_older_clients_are_off_unless_chosen() -> None:
    name = "GPU_DEV_ACCEPT_AWS_CREDENTIALS"
    assert name not in render("generic").text
    assert name in render("generic", ("access.acceptAwsCredentials=true",)).text


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_a_server_makes_itself_a_certificate(tmp_path: Path) -> None:
    """`start.sh` up to the start of the server, which writes down what it was told."""
    programs, tls = tmp_path / "bin", tmp_path / "tls"
    programs.mkdir()
    tls.mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "PG_VERSION").write_text("18\n")
    postgres = programs / "postgres"
    postgres.write_text('#!/bin/sh\necho "$@"\n')
    postgres.chmod(0o755)
    script = Path(__file__).parents[2] / "deploy" / "helm" / "gpu-dev" / "files" / "postgres" / "start.sh"
    settings = ("CONFIG_DIR", "SOCKET_DIR", "REPLICATION_PASSWORD", "SYNCHRONOUS_STANDBYS", "PRIMARY_HOST")
    environment = {
        **dict.fromkeys((*settings, "PRIMARY_PORT", "PORT"), "x"),
        "PATH": f"{programs}:/usr/bin:/bin",
        "PGDATA": str(tmp_path / "data"),
        "TLS_DIR": str(tls),
    }
    told = subprocess.run(
        ["/bin/sh", str(script), "primary"], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert "ssl=on" in told
    assert (tls / "server.crt").read_text().startswith("-----BEGIN CERTIFICATE")
    assert (tls / "server.key").stat().st_mode & 0o077 == 0
