"""The pods and services that the tests of the cluster itself need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.kubernetes.images import DEVSERVER

_START_SSHD = Path(__file__).with_name("start_sshd.sh")
SSH_PORT = 22


def pod(name: str, node: str | None, *command: str, **container: Any) -> dict[str, Any]:
    """A pod of one container of the image of dev servers."""
    selector = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            **selector,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": DEVSERVER.name,
                    "imagePullPolicy": "Never",
                    "command": list(command),
                    **container,
                }
            ],
        },
    }


def sshd(name: str, node: str, authorized_key: str) -> dict[str, Any]:
    """A pod to log in to as `dev`."""
    environment = [{"name": "AUTHORIZED_KEY", "value": authorized_key}]
    return pod(name, node, "sh", "-c", _START_SSHD.read_text(), env=environment)


def node_port(name: str) -> dict[str, Any]:
    """A service that leads to the pod of this name from a port of every node."""
    ports = [{"port": SSH_PORT, "targetPort": SSH_PORT}]
    spec = {"type": "NodePort", "selector": {"app": name}, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def headless(name: str) -> dict[str, Any]:
    """A service whose name resolves to the address of the pod of this name."""
    spec = {"clusterIP": "None", "selector": {"app": name}, "ports": [{"port": SSH_PORT}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
