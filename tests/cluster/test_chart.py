"""The chart before a real API server: every object is accepted, and the admission policy is heeded."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from tests.support.infra.chart import Manifest, render
from tests.support.kubernetes.access import Access
from tests.support.kubernetes.processes import ClusterFailed

DEADLINE_SECONDS = 60
DRY_RUN = ("apply", "--server-side", "--dry-run=server", "--filename=-")


@pytest.mark.parametrize("values", ["generic", "kind"])
def test_every_object_is_accepted(access: Access, namespace: str, values: str) -> None:
    settings = (f"devServers.namespace={namespace}", "devServers.createNamespace=false")
    rendering = render(values, settings, "--namespace", namespace)
    listed = {"apiVersion": "v1", "kind": "List", "items": list(rendering.objects)}
    said = access.kubectl(*DRY_RUN, stdin=json.dumps(listed))
    assert len(said.splitlines()) == len(rendering.objects)


@pytest.fixture(scope="module")
def guarded_namespace(access: Access) -> Iterator[str]:
    with access.namespace() as name:
        yield name


@pytest.fixture(scope="module")
def guarded(access: Access, guarded_namespace: str) -> Iterator[str]:
    """A namespace for dev servers with the policy in force, which no test alters: all of them only ask."""
    namespace = guarded_namespace
    rendering = render("generic", (f"devServers.namespace={namespace}",))
    policy = rendering.of_kind("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    access.kubectl(
        "apply", "--filename=-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": policy})
    )
    try:
        until_refused(access, pod(namespace, {"privileged": True}))
        yield namespace
    finally:
        for one in policy:
            access.kubectl("delete", one["kind"], one["metadata"]["name"])


def pod(namespace: str, context: Manifest, labels: dict[str, str] | None = None, **spec: object) -> Manifest:
    container = {"name": "dev", "image": "gpu-dev.test/pause:1", "securityContext": context}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "one", "namespace": namespace, "labels": labels or {}},
        "spec": {"containers": [container], **spec},
    }


def is_admitted(access: Access, one: Manifest) -> bool:
    try:
        access.kubectl("create", "--dry-run=server", "--filename=-", stdin=json.dumps(one))
    except ClusterFailed as refusal:
        if "ValidatingAdmissionPolicy 'gpu-dev-servers'" not in str(refusal):
            raise
        return False
    return True


def until_refused(access: Access, one: Manifest) -> None:
    """The API server learns of a policy a moment after it was made."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while is_admitted(access, one):
        assert time.monotonic() < deadline, "the policy is not heeded"


def adding(*names: str) -> Manifest:
    return {"capabilities": {"drop": ["ALL"], "add": list(names)}}


@pytest.mark.parametrize(
    "context, labels, spec, admitted",
    [
        ({}, {}, {}, True),
        (adding("CHOWN", "SETUID", "SYS_CHROOT"), {}, {}, True),
        (adding("SYS_ADMIN"), {}, {}, False),
        (adding("SYS_ADMIN"), {"gpu-dev/profiling": "true"}, {}, True),
        (adding("SYS_ADMIN"), {"gpu-dev/efa": "true"}, {}, False),
        (adding("IPC_LOCK"), {}, {}, False),
        (adding("IPC_LOCK"), {"gpu-dev/efa": "true"}, {}, True),
        (adding("NET_ADMIN"), {"gpu-dev/profiling": "true", "gpu-dev/efa": "true"}, {}, False),
        ({"privileged": True}, {"gpu-dev/profiling": "true"}, {}, False),
        ({}, {}, {"hostNetwork": True}, False),
        ({}, {}, {"hostPID": True}, False),
        ({}, {}, {"volumes": [{"name": "node", "hostPath": {"path": "/"}}]}, False),
    ],
)
def test_policy(
    access: Access,
    guarded: str,
    context: Manifest,
    labels: dict[str, str],
    spec: dict[str, object],
    *,
    admitted: bool,
) -> None:
    assert is_admitted(access, pod(guarded, context, labels, **spec)) is admitted
