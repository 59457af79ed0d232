"""Names, labels and owners."""

from __future__ import annotations

from collections.abc import Mapping

from gpudev.adapters.kubernetes.labels import (
    COMPONENT,
    FIELD_MANAGER,
    MANAGED_BY,
    RESERVATION,
    Json,
    name_of,
    uid_of,
)
from gpudev.domain.names import ReservationId


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
