"""Routes of the nodes, for admins."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from gpudev.api.admin import only_admins
from gpudev.api.context import App, Caller
from gpudev.api.encoding import json_response
from gpudev.api.errors import OF_EVERY_CALLER, problems
from gpudev.api.times import Zone
from gpudev.app.nodes import StoredNode
from gpudev.domain.reservation import Reservation
from gpudev.texts.sentences import say
from gpudev.wire.admin import DrainRequest, NodeChanged, NodeDetail, NodeList, NodeReservation
from gpudev.wire.text import Lookup

NodeName = Annotated[Lookup, Path(description="Name of the node.")]

router = APIRouter(
    prefix="/v1/admin", tags=["admin"], dependencies=[Depends(only_admins)], responses=OF_EVERY_CALLER
)


@router.get("/nodes", response_model=NodeList)
async def list_nodes(app: App, caller: Caller) -> Response:
    """Every node: whether it takes reservations, and which are there."""
    return json_response(NodeList(nodes=[_detail(node) for node in await app.nodes.list_all(caller)]))


@router.post("/nodes/{name}/drain", response_model=NodeChanged, responses=problems(400, 404))
async def drain_node(app: App, caller: Caller, name: NodeName, body: DrainRequest, zone: Zone) -> Response:
    """Take a node out of service: nothing new is placed there, and owners of what runs there are told."""
    node, answer = await app.nodes.drain(caller, name, body.reason)
    return json_response(NodeChanged(node=_detail(node), message=say(answer, zone)))


@router.post("/nodes/{name}/undrain", response_model=NodeChanged, responses=problems(404))
async def undrain_node(app: App, caller: Caller, name: NodeName, zone: Zone) -> Response:
    """Put a drained node back into service."""
    node, answer = await app.nodes.undrain(caller, name)
    return json_response(NodeChanged(node=_detail(node), message=say(answer, zone)))


def _detail(node: StoredNode) -> NodeDetail:
    drain = node.drain
    return NodeDetail(
        name=node.name,
        gpu_type=node.gpu_type,
        slots=node.slots,
        state=node.state,
        reservations=[_reservation(holder) for holder in node.holders],
        reason=(drain.reason or None) if drain else None,
        drained_by=drain.by if drain else None,
        drained_at=drain.at if drain else None,
        emptied_at=drain.emptied_at if drain else None,
    )


def _reservation(holder: Reservation) -> NodeReservation:
    return NodeReservation(
        job_id=holder.id,
        name=holder.spec.name,
        user=holder.spec.username,
        status=holder.state.status,
        gpu_count=holder.gpus_per_node,
        expires_at=holder.state.expires_at,
    )
