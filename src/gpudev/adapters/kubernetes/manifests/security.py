"""What a dev server may do, and where it may go."""

from __future__ import annotations

from gpudev.adapters.kubernetes.labels import Json

TOLERATED = "nvidia.com/gpu"
"""The taint that keeps others off GPU nodes."""

_SSHD_AND_SUDO = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
]
"""What sshd needs to become the user, and sudo to install a package: part of what every container has."""

_FOR_PROFILING = "SYS_ADMIN"


def make_pod_security() -> Json:
    return {"seccompProfile": {"type": "RuntimeDefault"}}


def make_container_security(*, is_profiling: bool) -> Json:
    """In the container sshd is root, and sudo must be let become so."""
    added = [*_SSHD_AND_SUDO, *([_FOR_PROFILING] if is_profiling else [])]
    return {
        "runAsUser": 0,
        "allowPrivilegeEscalation": True,
        "capabilities": {"drop": ["ALL"], "add": added},
    }


def make_tolerations() -> list[Json]:
    """A silent node does not end a reservation: only what is known to be lost does."""
    return [
        {"key": TOLERATED, "operator": "Exists"},
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
    ]
