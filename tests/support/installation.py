"""The chart installed in the test cluster, and somebody outside who uses it."""

from __future__ import annotations

import hashlib
import json
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.infra.chart import NAMESPACE
from tests.support.infra.programs import get_helm
from tests.support.kubernetes.cluster import Cluster
from tests.support.kubernetes.control_plane_image import POSTGRES, REPOSITORY, ControlPlaneImage
from tests.support.kubernetes.images import DEVSERVER
from tests.support.kubernetes_machine import GPU_TYPES
from tests.support.machine import Machine, wait_for

RELEASE = "gpu-dev"
STORAGE_CLASS = "folders"
KEY = "key-of-somebody-outside"
_NEVER = "0 0 1 1 *"
_PATIENCE = "300s"
_POSTGRES_UID = 999
_VOLUMES = ("primary", "replica", "backups")
_ADD_KEY = """
WITH person AS (INSERT INTO api_users (username) VALUES ('ada') RETURNING user_id)
INSERT INTO api_keys (user_id, key_hash, key_prefix, expires_at)
SELECT user_id, '\\x{digest}', 'key-of-s', now() + interval '1 hour' FROM person
"""
_CLIENTS = """
SELECT DISTINCT usename, ssl FROM pg_stat_activity JOIN pg_stat_ssl USING (pid) WHERE client_addr IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class Installation:
    cluster: Cluster
    values: Path

    def install(self, chart: Path, image: ControlPlaneImage, wait: str = "--wait") -> None:
        self._helm("install", chart, image, wait, "--create-namespace", "--wait-for-jobs")

    def upgrade(self, chart: Path, image: ControlPlaneImage) -> None:
        """Until the pods of the version before are gone: such that are about to go still answer a moment.

        They do not know the present schema, so what they answer then says nothing of the upgrade.
        """
        self._helm("upgrade", chart, image, "--wait")
        wait_for(
            lambda: not any(map(_is_leaving, self._list_all_pods("app=api-service"))),
            "the end of the API's former pods",
        )

    def uninstall(self) -> None:
        self._run_helm("uninstall", RELEASE, "--wait", "--timeout", _PATIENCE, "--ignore-not-found")
        for namespace in (NAMESPACE, "gpu-dev"):
            self.cluster.access.kubectl("delete", "namespace", namespace, "--ignore-not-found")
        for name in _VOLUMES:
            self.cluster.access.kubectl("delete", "persistentvolume", name, "--ignore-not-found")

    def list_pods(self, selector: str) -> list[str]:
        return [pod["metadata"]["name"] for pod in self._find_pods(selector)]

    def list_images(self, selector: str) -> set[str]:
        """What they run."""
        return {one["image"] for pod in self._find_pods(selector) for one in pod["spec"]["containers"]}

    def _find_pods(self, selector: str) -> list[dict[str, Any]]:
        """Those that are not about to go."""
        pods = self._list_all_pods(selector)
        return [pod for pod in pods if not _is_leaving(pod)]

    def _list_all_pods(self, selector: str) -> list[dict[str, Any]]:
        flags = (f"--selector={selector}", f"--namespace={NAMESPACE}")
        pods: list[dict[str, Any]] = self.cluster.access.get("pods", *flags)["items"]
        return pods

    def kill(self, pod: str) -> None:
        """At once, as the loss of its node would."""
        flags = (f"--namespace={NAMESPACE}", "--grace-period=0", "--force", "--wait=false")
        self.cluster.access.kubectl("delete", "pod", pod, *flags)

    def wait_until_whole(self) -> None:
        for kind in ("deployment", "statefulset"):
            for one in self.cluster.access.get(kind, f"--namespace={NAMESPACE}")["items"]:
                name = f"{kind}/{one['metadata']['name']}"
                flags = (f"--namespace={NAMESPACE}", f"--timeout={_PATIENCE}")
                self.cluster.access.kubectl("rollout", "status", name, *flags)

    def find_address(self, service: str) -> str:
        """Where a Service answers outside of the cluster."""
        found = self.cluster.access.get("service", service, f"--namespace={NAMESPACE}")
        (port,) = found["spec"]["ports"]
        return f"http://{self.cluster.nodes['node-a'].address}:{port['nodePort']}"

    def query(self, statement: str) -> list[str]:
        """Rows of the database, as its superuser, by the socket in its pod."""
        psql = ["psql", "--no-psqlrc", "--host=/var/run/postgresql", "--username=postgres", "--dbname=gpudev"]
        flags = ["--quiet", "--tuples-only", "--no-align", f"--command={statement}"]
        where = (f"--namespace={NAMESPACE}", "postgres-primary-0")
        return self.cluster.access.kubectl("exec", *where, "--", *psql, *flags).splitlines()

    def list_clients(self) -> set[str]:
        """Who is connected to the database over the network, and whether by TLS."""
        return set(self.query(_CLIENTS))

    def add_person(self, home: Path) -> Machine:
        """Somebody with a key, as a login would have given it."""
        self.query(_ADD_KEY.format(digest=hashlib.sha256(KEY.encode()).hexdigest()))
        api_url = self.find_address("api-service-public")
        # Helm has waited for the pods; that their node leads connections to them comes a moment later.
        wait_for(lambda: is_open(api_url), "the address of the API")
        ends_at = datetime.now(UTC) + timedelta(hours=1)
        folder = home / ".gpu-dev"
        folder.mkdir(mode=0o700)
        credentials = folder / "credentials"
        credentials.touch(mode=0o600)
        credentials.write_text(json.dumps({api_url: {"api_key": KEY, "expires_at": ends_at.isoformat()}}))
        return Machine(home, {"GPU_DEV_API_URL": api_url})

    def _helm(self, verb: str, chart: Path, image: ControlPlaneImage, *flags: str) -> None:
        files = ["--values", str(chart / "values" / "kind.yaml"), "--values", str(self.values)]
        tag = ["--set-string", f"image.tag={image.tag}"]
        self._run_helm(verb, RELEASE, str(chart), *files, *tag, "--timeout", _PATIENCE, *flags)

    def _run_helm(self, *arguments: str) -> None:
        where = ["--kubeconfig", str(self.cluster.kubeconfig), "--namespace", NAMESPACE]
        done = subprocess.run([get_helm(), *arguments, *where], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{self._describe_pods()}"

    def _describe_pods(self) -> str:
        return self.cluster.access.kubectl("get", "pods", "--all-namespaces", "--output=wide")


def is_open(url: str) -> bool:
    address = urlsplit(url)
    try:
        socket.create_connection((address.hostname, address.port), timeout=5).close()
    except OSError:
        return False
    return True


@dataclass(slots=True)
class OpenShell:
    """An SSH session that stays open, and what it is asked meanwhile."""

    process: subprocess.Popen[bytes] = field(repr=False)

    @classmethod
    def on(cls, machine: Machine, reservation: str) -> OpenShell:
        config = machine.home / ".gpu-dev" / f"{reservation[:8]}-sshconfig"
        return cls(
            subprocess.Popen(
                ["ssh", "-F", config, f"gpu-dev-{reservation[:8]}", "cat"],
                env=machine.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        )

    def echoes(self, words: str) -> bool:
        """Whether what is typed comes back."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{words}\n".encode())
        self.process.stdin.flush()
        return self.process.stdout.readline() == f"{words}\n".encode()

    def close(self) -> None:
        self.process.communicate(timeout=60)


@contextmanager
def prepared_installation(
    cluster: Cluster, folder: Path, *images: ControlPlaneImage
) -> Iterator[Installation]:
    """A cluster with the images and volumes that the chart wants, and nothing of it afterwards."""
    for image in images:
        archive = image.write(folder)
        with ThreadPoolExecutor() as pool:
            imports = [pool.submit(node.containerd.import_image, archive) for node in cluster.nodes.values()]
        for done in imports:
            done.result()
        archive.unlink()
    values = folder / "values.json"
    values.write_text(json.dumps(_make_values()))
    installation = Installation(cluster, values)
    installation.uninstall()
    cluster.access.create([_make_volume(name, folder) for name in _VOLUMES])
    try:
        yield installation
    finally:
        installation.uninstall()


def _make_values() -> dict[str, Any]:
    return {
        "image": {"repository": REPOSITORY},
        "aws": {"allowedAccounts": ["123456789012"]},
        "devServers": {"image": DEVSERVER.name, "pullPolicy": "Never", "gpuTypes": GPU_TYPES},
        "postgres": {
            "image": POSTGRES,
            "storage": {"className": STORAGE_CLASS, "size": "1Gi"},
            "backup": {"storageSize": "1Gi"},
        },
        # They would ask for Auto Scaling groups, which are not there.
        "schedules": {"reservationExpiry": _NEVER, "availabilityUpdater": _NEVER},
    }


def _make_volume(name: str, folder: Path) -> dict[str, Any]:
    """A folder of this machine, which both nodes see."""
    place = folder / name
    place.mkdir()
    subprocess.run(["chown", str(_POSTGRES_UID), str(place)], check=True)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": STORAGE_CLASS,
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": str(place)},
        },
    }


def _is_leaving(pod: dict[str, Any]) -> bool:
    return "deletionTimestamp" in pod["metadata"]
