"""What is mounted in a dev server, and where."""

from __future__ import annotations

from dataclasses import dataclass

from gpudev.adapters.kubernetes.labels import Json

STARTUP = "/etc/gpu-dev/startup"
KEYS = "/etc/gpu-dev/keys"
HOME = "/home/dev"
WORKSPACE = "/workspace"

GANG_KEY = "gang_key"
GANG_HOSTS = "gang_hosts"
"""The host keys of all members, as `known_hosts` has them."""

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
    home_limit: str
    """The most that a home without a disk may hold."""
    rank: int = 0
    is_gang: bool = False
    home: str = ""
    """The claim that is its home; empty: a home that goes with the pod."""


def make_volumes(volumes: Volumes) -> list[Json]:
    return [
        {"name": "home", **_home(volumes)},
        {"name": "workspace", "emptyDir": {"sizeLimit": volumes.workspace}},
        {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": volumes.shared_memory}},
        {"name": "startup", "configMap": {"name": volumes.startup, "defaultMode": _READABLE}},
        {"name": "keys", "secret": {"secretName": volumes.keys, "items": _key_files(volumes)}},
    ]


def make_mounts() -> list[Json]:
    return [
        {"name": "home", "mountPath": HOME},
        {"name": "workspace", "mountPath": WORKSPACE},
        {"name": "shared-memory", "mountPath": "/dev/shm"},  # noqa: S108 - a mount in the pod
        {"name": "startup", "mountPath": STARTUP, "readOnly": True},
        {"name": "keys", "mountPath": KEYS, "readOnly": True},
    ]


def _home(volumes: Volumes) -> Json:
    if volumes.home:
        return {"persistentVolumeClaim": {"claimName": volumes.home}}
    return {"emptyDir": {"sizeLimit": volumes.home_limit}}


def host_key_name(rank: int) -> str:
    """In the Secret, which has those of all members."""
    return f"host_key.{rank}" if rank else "host_key"


def _key_files(volumes: Volumes) -> list[Json]:
    """A member has no other's host key, but the key that all of them log in with."""
    shared = [
        {"key": GANG_KEY, "path": GANG_KEY, "mode": _FOR_ROOT},
        {"key": GANG_HOSTS, "path": GANG_HOSTS, "mode": _READABLE},
    ]
    return [
        {"key": host_key_name(volumes.rank), "path": "host_key", "mode": _FOR_ROOT},
        {"key": "authorized_keys", "path": "authorized_keys", "mode": _READABLE},
        *(shared if volumes.is_gang else []),
    ]
