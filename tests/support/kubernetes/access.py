"""What tests ask of a cluster through its API, whoever runs it: a kubeconfig is all that is needed."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.support.kubernetes.kubeconfig import Endpoint, write_kubeconfig
from tests.support.kubernetes.processes import ClusterFailed

GPU = "nvidia.com/gpu"
_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Access:
    """A cluster, seen by somebody who may do everything."""

    kubeconfig: Path
    kubectl_program: str
    scratch: Path
    """A folder for the kubeconfigs of others."""

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """One `kubectl` command; its output."""
        done = subprocess.run(
            [self.kubectl_program, f"--kubeconfig={self.kubeconfig}", *arguments],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise ClusterFailed(
                f"kubectl {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}"
            )
        return done.stdout

    def get(self, *arguments: str) -> dict[str, Any]:
        """`kubectl get`, as JSON."""
        found: dict[str, Any] = json.loads(self.kubectl("get", *arguments, "--output=json"))
        return found

    def create(self, manifests: Sequence[dict[str, Any]], namespace: str = "default") -> None:
        """Create these objects; one that exists is an error."""
        whole = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        self.kubectl("create", f"--namespace={namespace}", "--filename=-", stdin=json.dumps(whole))

    def wait(self, what: str, condition: str, namespace: str = "default", seconds: float = 60) -> None:
        """Until an object has a condition, as `kubectl wait --for` names it."""
        flags = (f"--for={condition}", f"--namespace={namespace}", f"--timeout={seconds:.0f}s")
        self.kubectl("wait", what, *flags)

    def wait_for_account(self, namespace: str) -> None:
        """Until the namespace has its service account, without which it takes no pods.

        The controller manager makes it: at once, or after an API server that was away is back and it has
        looked at everything anew, which took more than a minute on a machine with much else to do.
        """
        self.wait("serviceaccount/default", "create", namespace, seconds=180)

    @contextmanager
    def namespace(self) -> Iterator[str]:
        """A namespace with a name of its own, deleted afterwards with all that is in it."""
        name = f"test-{uuid4().hex[:12]}"
        self.kubectl("create", "namespace", name)
        try:
            self.wait_for_account(name)
            yield name
        finally:
            self.kubectl("delete", "namespace", name, "--wait=false")

    def kubeconfig_for(self, service_account: str, namespace: str, hours: int = 12) -> Path:
        """A kubeconfig of a service account, which exists: it may do what its roles allow, and no more."""
        flags = (f"--namespace={namespace}", f"--duration={hours}h")
        token = self.kubectl("create", "token", service_account, *flags).strip()
        path = self.scratch / f"{namespace}-{service_account}.json"
        return write_kubeconfig(path, self.endpoint(), token, namespace)

    def set_gpus(self, node: str, count: int) -> None:
        """How many GPUs the node says that it has."""
        patch = [
            {"op": "add", "path": f"/status/{kind}/{GPU.replace('/', '~1')}", "value": str(count)}
            for kind in ("capacity", "allocatable")
        ]
        flags = ("--subresource=status", "--type=json", f"--patch={json.dumps(patch)}")
        self.kubectl("patch", "node", node, *flags)

    def cordon(self, node: str) -> None:
        self.kubectl("cordon", node)

    def uncordon(self, node: str) -> None:
        self.kubectl("uncordon", node)

    def remove_node(self, node: str) -> None:
        """The node object alone; a kubelet that runs makes it again when it is restarted."""
        self.kubectl("delete", "node", node, "--wait=true")

    def endpoint(self) -> Endpoint:
        return _find_endpoint(self)


@cache
def _find_endpoint(access: Access) -> Endpoint:
    """Once for each cluster: it stays where it is, and most tests want a kubeconfig of their own."""
    view = access.kubectl("config", "view", "--raw", "--flatten", "--minify", "--output=json")
    cluster = json.loads(view)["clusters"][0]["cluster"]
    return Endpoint(cluster["server"], base64.b64decode(cluster["certificate-authority-data"]))


def is_ready(thing: dict[str, Any]) -> bool:
    """Whether a node or pod says that it is ready."""
    conditions = thing["status"].get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
