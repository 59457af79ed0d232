"""The start-up files of older versions, taken away under the roles that are shipped."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gpudev.adapters.kubernetes.api_objects import Json
from gpudev.adapters.kubernetes.client import connect
from gpudev.adapters.kubernetes.old_startups import OldStartups
from gpudev.adapters.kubernetes.startup import make_startup, startup_name
from tests.support.kubernetes.access import Access
from tests.support.kubernetes.images import PAUSE
from tests.support.kubernetes_roles import CONTROLLER, applied_roles

pytestmark = pytest.mark.anyio

USED, UNUSED, FOREIGN = "gpu-dev-startup-used", "gpu-dev-startup-unused", "gpu-dev-startup-foreign"


def startup(namespace: str, name: str) -> Json:
    made = make_startup(namespace)
    return made | {"metadata": made["metadata"] | {"name": name}}


def pod_with(namespace: str, name: str) -> Json:
    """Never scheduled, which changes nothing about what it is to mount."""
    spec = {
        "containers": [{"name": "dev", "image": PAUSE.name}],
        "nodeSelector": {"kubernetes.io/hostname": "nowhere"},
        "volumes": [{"name": "startup", "configMap": {"name": name}}],
    }
    metadata = make_startup(namespace)["metadata"] | {"name": "uses-it"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def test_only_what_is_ours_and_old_and_unused_goes(access: Access, namespace: str) -> None:
    foreign = startup(namespace, FOREIGN)
    foreign["metadata"]["labels"] = {}
    mine = [make_startup(namespace), startup(namespace, USED), startup(namespace, UNUSED)]
    access.create([*mine, foreign, pod_with(namespace, USED)], namespace)
    with applied_roles(access, namespace):
        async with connect(str(access.kubeconfig_for(CONTROLLER, namespace))) as client:
            old = OldStartups(client, namespace)
            await old.sweep(datetime.now(UTC))
            assert _names(access, namespace) >= {UNUSED}
            await old.sweep(datetime.now(UTC) + timedelta(hours=2))
    assert _names(access, namespace) == {startup_name(), USED, FOREIGN}


def _names(access: Access, namespace: str) -> set[str]:
    found = access.get("configmaps", f"--namespace={namespace}")["items"]
    return {one["metadata"]["name"] for one in found if one["metadata"]["name"].startswith("gpu-dev-")}
