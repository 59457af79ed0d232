"""What a dev server gets from its node: CPU, memory, local disk and GPUs, and what is mounted where."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from gpudev.adapters.kubernetes.api_objects import Json
from gpudev.domain.catalogue import Amount, GpuType, Share

STORAGE = "ephemeral-storage"
_MIB_PER_GIB = 1024
_LEAST_SHARED_MEMORY_GIB = 8


_SCRATCH_GIB = 20
"""For `/tmp` and installed packages, where the share of the node's disk is not known."""
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
class Storage:
    """Local disk of a pod, in GiB. What goes beyond the limit evicts this pod, and no other."""

    limit_gib: int
    request_gib: int | None
    """None: the node does not report its disk, and the scheduler would find none to give."""

    def at_most(self, gib: int) -> str:
        return memory_quantity(min(gib, self.limit_gib))


def share_storage(node_gib: int, percent: int, slots: int, node_slots: int) -> int:
    """The part of a node's disk that goes with so many of its slots; 0 if the node reports no disk."""
    part = min(Fraction(1), Fraction(slots, node_slots))
    return max(1, int(part * node_gib * percent / 100)) if node_gib else 0


def choose_storage(share_gib: int, home_gib: int, workspace_gib: int) -> Storage:
    """Requested in full, so that the scheduler never gives the same disk twice."""
    if not share_gib:
        return Storage(home_gib + workspace_gib + _SCRATCH_GIB, None)
    return Storage(share_gib, share_gib)


def make_resources(share: Share, storage: Storage, gpu_type: GpuType, gpu_count: int) -> Json:
    requested = {} if storage.request_gib is None else {STORAGE: memory_quantity(storage.request_gib)}
    gpus = {gpu_type.resource: str(gpu_count)} if gpu_count else {}
    return {
        "requests": {
            "cpu": cpu_quantity(share.cpu_request),
            "memory": memory_quantity(share.memory_request_gib),
            **requested,
            **gpus,
        },
        "limits": {
            "cpu": cpu_quantity(share.cpu_limit),
            "memory": memory_quantity(share.memory_limit_gib),
            STORAGE: memory_quantity(storage.limit_gib),
            **gpus,
        },
    }


def shared_memory(share: Share) -> str:
    """Half the memory share and at least what NCCL wants, but never more than there is to use."""
    limit = Fraction(share.memory_limit_gib)
    return memory_quantity(min(limit, max(limit / 2, Fraction(_LEAST_SHARED_MEMORY_GIB))))


def cpu_quantity(vcpus: Amount) -> str:
    exact = Fraction(vcpus)
    return str(exact) if exact.denominator == 1 else f"{max(1, int(exact * 1000))}m"


def memory_quantity(gibibytes: Amount) -> str:
    exact = Fraction(gibibytes)
    return f"{exact}Gi" if exact.denominator == 1 else f"{max(1, int(exact * _MIB_PER_GIB))}Mi"


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
