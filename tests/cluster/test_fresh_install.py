"""The present chart installed where there was none, and upgraded: as whom it connects to its database."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.infra.chart import CHART, NAMESPACE
from tests.support.installation import Installation, prepared_installation
from tests.support.kubernetes.cluster import Cluster
from tests.support.kubernetes.control_plane_image import ControlPlaneImage
from tests.support.kubernetes.processes import ClusterFailed
from tests.support.machine import wait_for

# An upgrade from the first chart is tried each time, in test_installed.py.
pytestmark = pytest.mark.soak

IMAGE = ControlPlaneImage("0.2.0", CHART.parents[2])
BY_TCP = ("--host=postgres-primary", "--username=gpudev_app", "--dbname=gpudev")


@pytest.fixture(scope="module")
def installation(cluster: Cluster) -> Iterator[Installation]:
    with TemporaryDirectory(prefix="gpu-dev-fresh-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with prepared_installation(cluster, folder, IMAGE) as prepared:
            prepared.install(CHART, IMAGE)
            yield prepared


def test_the_service_connects_with_tls_as_a_role_that_owns_nothing(installation: Installation) -> None:
    assert wait_for(lambda: installation.list_clients() == {"gpudev_app|t", "replicator|t"}, "its clients")
    assert installation.query("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'") == [
        "gpudev"
    ]


def psql(installation: Installation, sslmode: str, password: str, *flags: str) -> str:
    """Over the network, from the pod of the replica."""
    exec_in = ("exec", f"--namespace={NAMESPACE}", "postgres-replica-0", "--")
    environment = ("env", f"PGSSLMODE={sslmode}", f"PGPASSWORD={password}")
    return installation.cluster.access.kubectl(*exec_in, *environment, "psql", *BY_TCP, *flags)


def read_password(installation: Installation) -> str:
    secret = installation.cluster.access.get("secret", "postgres-app", f"--namespace={NAMESPACE}")
    return base64.b64decode(secret["data"]["APP_PASSWORD"]).decode()


def test_a_connection_without_tls_is_rejected(installation: Installation) -> None:
    password = read_password(installation)
    assert "gpudev_app" in psql(installation, "verify-full", password, "--command=SELECT current_user")
    with pytest.raises(ClusterFailed, match="no encryption"):
        psql(installation, "disable", password, "--command=SELECT 1")


def test_a_changed_password_is_in_force_after_the_next_upgrade(installation: Installation) -> None:
    patch = json.dumps({"stringData": {"APP_PASSWORD": "changed"}})
    where = ("secret", "postgres-app", f"--namespace={NAMESPACE}")
    installation.cluster.access.kubectl("patch", *where, f"--patch={patch}")
    installation.upgrade(CHART, IMAGE)
    assert read_password(installation) == "changed"
    assert "1" in psql(installation, "verify-full", "changed", "--command=SELECT 1")
