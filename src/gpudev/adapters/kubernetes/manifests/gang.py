"""The names by which the members of a gang find each other, through the DNS of the cluster."""

from __future__ import annotations

from gpudev.domain.server import ServerSpec


def gang_name(spec: ServerSpec) -> str:
    """Of what the members share: the Service without an address, and the NetworkPolicy."""
    return f"{spec.name}-gang"


def gang_hosts(spec: ServerSpec) -> tuple[str, ...]:
    """By rank. The search list of every pod has the namespace, so that these are enough.

    A member's name alone would not do: it is also that of the Service that leads to it from outside.
    """
    return tuple(f"{name}.{gang_name(spec)}" for name in spec.member_names)
