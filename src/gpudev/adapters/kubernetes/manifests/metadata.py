"""Names, labels and owners of our objects, and the DNS names of the members of a gang."""

from __future__ import annotations

from collections.abc import Mapping

from gpudev.adapters.kubernetes.api_objects import (
    COMPONENT,
    FIELD_MANAGER,
    MANAGED_BY,
    RESERVATION,
    Json,
    name_of,
    uid_of,
)
from gpudev.domain.names import ReservationId
from gpudev.domain.server import ServerSpec


def make_metadata(name: str, namespace: str, labels: Mapping[str, str]) -> Json:
    return {
        "name": name,
        "namespace": namespace,
        "labels": {MANAGED_BY: FIELD_MANAGER, **labels},
    }


def reservation_labels(reservation_id: ReservationId, component: str) -> dict[str, str]:
    return {COMPONENT: component, RESERVATION: reservation_id}


def reference_to(service: Json) -> Json:
    """The Service as an owner: what hangs from it goes when it goes."""
    return {"apiVersion": "v1", "kind": "Service", "name": name_of(service), "uid": uid_of(service)}


def gang_name(spec: ServerSpec) -> str:
    """Of what the members share: the Service without an address, and the NetworkPolicy."""
    return f"{spec.name}-gang"


def gang_hosts(spec: ServerSpec) -> tuple[str, ...]:
    """By rank. The search list of every pod has the namespace, so that these are enough.

    A member's name alone would not do: it is also that of the Service that leads to it from outside.
    """
    return tuple(f"{name}.{gang_name(spec)}" for name in spec.member_names)
