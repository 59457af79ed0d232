"""What is mounted in a dev server, and where."""

from __future__ import annotations

from dataclasses import dataclass

from gpudev.adapters.kubernetes.labels import Json

STARTUP = "/etc/gpu-dev/startup"
KEYS = "/etc/gpu-dev/keys"
HOME = "/home/dev"
WORKSPACE = "/workspace"

_READABLE = 0o444
_FOR_ROOT = 0o400


@dataclass(frozen=True, slots=True)
class Volumes:
    startup: str
    """Name of the ConfigMap with the start-up files."""
    keys: str
    """Name of the Secret with the host key and the keys that are let in."""
    shared_memory: str
    workspace: str


def make_volumes(volumes: Volumes) -> list[Json]:
    return [
        {"name": "home", "emptyDir": {}},
        {"name": "workspace", "emptyDir": {"sizeLimit": volumes.workspace}},
        {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": volumes.shared_memory}},
        {"name": "startup", "configMap": {"name": volumes.startup, "defaultMode": _READABLE}},
        {"name": "keys", "secret": {"secretName": volumes.keys, "items": _key_files()}},
    ]


def make_mounts() -> list[Json]:
    return [
        {"name": "home", "mountPath": HOME},
        {"name": "workspace", "mountPath": WORKSPACE},
        {"name": "shared-memory", "mountPath": "/dev/shm"},  # noqa: S108 - a mount in the pod
        {"name": "startup", "mountPath": STARTUP, "readOnly": True},
        {"name": "keys", "mountPath": KEYS, "readOnly": True},
    ]


def _key_files() -> list[Json]:
    return [
        {"key": "host_key", "path": "host_key", "mode": _FOR_ROOT},
        {"key": "authorized_keys", "path": "authorized_keys", "mode": _READABLE},
    ]
