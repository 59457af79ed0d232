"""The nodes of the cluster on the wire, for admins."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from gpudev.wire.message import message
from gpudev.wire.text import Text


@message
class NodeReservation:
    """A reservation that holds room on a node."""

    job_id: str
    """Its id."""
    name: str
    """Its name."""
    user: str
    """Whose it is."""
    status: str
    """Its status."""
    gpu_count: int
    """Its GPUs on this node."""
    expires_at: datetime | None = None
    """When it ends, once it is active."""


@message
class NodeDetail:
    name: str
    """Name of the node."""
    gpu_type: str
    """Its GPU type."""
    slots: int
    """Its GPUs, or the user slots of a CPU node; 0 if it is gone."""
    state: str
    """in_service, closed (the cluster itself places nothing there), draining, drained, or gone."""
    reservations: list[NodeReservation]
    """Those that hold room there, the first to end first."""
    reason: str | None = None
    """Why it is drained, if that was said."""
    drained_by: str | None = None
    """Who drained it."""
    drained_at: datetime | None = None
    """When it was drained."""
    emptied_at: datetime | None = None
    """Since when nothing is left on the drained node."""


@message
class NodeList:
    nodes: list[NodeDetail]
    """By type and name."""


@message
class DrainRequest:
    reason: Annotated[str, Text(200, code="bad_reason")] = ""
    """Why, in one line; the owners of reservations there read it."""


@message
class NodeChanged:
    node: NodeDetail
    """The node as it is now."""
    message: str
    """What was done, and what that means."""
