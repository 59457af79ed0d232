"""The roles of `deploy/kubernetes` in a namespace of the test, and a kubeconfig for each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.support.kubernetes.access import Access

RBAC = Path(__file__).parents[2] / "deploy" / "kubernetes" / "rbac.yaml"
DISKS = RBAC.with_name("rbac-disks.yaml")
CONTROLLER = "gpu-dev-controller"
API = "gpu-dev-api"
_OF_THE_CLUSTER = {"ClusterRole", "ClusterRoleBinding"}


@contextmanager
def applied_roles(access: Access, namespace: str, *, disks: bool = False) -> Iterator[None]:
    files = (RBAC, DISKS) if disks else (RBAC,)
    written = [manifest for file in files for manifest in yaml.safe_load_all(file.read_text())]
    manifests = [_moved(manifest, namespace) for manifest in written]
    whole = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    access.kubectl("apply", "--filename=-", stdin=whole)
    try:
        yield
    finally:
        shared = [one for one in manifests if one["kind"] in _OF_THE_CLUSTER]
        whole = json.dumps({"apiVersion": "v1", "kind": "List", "items": shared})
        access.kubectl("delete", "--filename=-", stdin=whole)


def _moved(manifest: dict[str, Any], namespace: str) -> dict[str, Any]:
    """The same in another namespace; what belongs to the whole cluster gets a name of its own."""
    text = json.dumps(manifest).replace('"namespace": "gpu-dev"', f'"namespace": "{namespace}"')
    moved: dict[str, Any] = json.loads(text)
    if moved["kind"] in _OF_THE_CLUSTER:
        moved["metadata"]["name"] += f"-{namespace}"
        if "roleRef" in moved:
            moved["roleRef"]["name"] += f"-{namespace}"
    return moved
