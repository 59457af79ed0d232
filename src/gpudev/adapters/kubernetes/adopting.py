"""Making an object of a reservation, or taking the one of an earlier try for it."""

from __future__ import annotations

from gpudev.adapters.kubernetes.client import AlreadyExists, Kind, KubernetesClient
from gpudev.adapters.kubernetes.labels import Json, name_of, owner_of
from gpudev.domain.errors import ClusterUnavailable, Defect
from gpudev.domain.names import ReservationId


async def create_or_adopt(
    client: KubernetesClient, kind: Kind, manifest: Json, reservation_id: ReservationId
) -> Json:
    """What has its name and belongs to another is never touched."""
    try:
        return await client.create(kind, manifest)
    except AlreadyExists:
        pass
    name = name_of(manifest)
    known = await client.find(kind, name)
    if known is None:
        raise still_going(name)
    if owner_of(known) != reservation_id:
        raise Defect(
            "cluster_object_of_another", kind=kind.plural, name=name, owner=owner_of(known), id=reservation_id
        )
    return known


def still_going(name: str) -> ClusterUnavailable:
    return ClusterUnavailable("cluster_object_going", name=name)
