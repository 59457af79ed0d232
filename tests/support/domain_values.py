"""Short ways to make the domain's values for tests; every moment is counted from one fixed `NOW`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from gpudev.domain.capacity import Node
from gpudev.domain.catalogue import GpuType
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.lifecycle import PLACED, TERMINAL, Status
from gpudev.domain.names import NodeName, OperationId, ReservationId, UserId
from gpudev.domain.reservation import Operation, OperationKind, Reason, Reservation, Terms
from gpudev.domain.server import ObservedServer, ServerPhase, SshAddress

NOW = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
POLICY = TimePolicy()
ADDRESS = SshAddress("node-a.example", 30022)
HOST_KEYS = ("ssh-ed25519 AAAA",)

QUAD = GpuType("quad", "test.4xlarge", gpus_per_node=4, vcpus=48, memory_gib=192)
"""A type with four GPUs a node, so that cases stay small enough to read."""
OCTO = GpuType("octo", "test.8xlarge", gpus_per_node=8, vcpus=96, memory_gib=384, max_nodes=4)
SLOTTED = GpuType("slotted", "test.cpu", gpus_per_node=0, vcpus=32, memory_gib=64)


def make_id(number: int) -> ReservationId:
    """A UUID whose first eight characters tell the number."""
    return ReservationId(f"{number:08x}-0000-4000-8000-{number:012x}")


def make_reservation(number: int = 1, **changes: Any) -> Reservation:
    """A pending request for one GPU and one hour, made `number` minutes before `NOW`, unless told otherwise.

    What belongs to a status (node, times, reason) is filled in, so that every value is one that can be.
    """
    status = changes.get("status", Status.PENDING)
    values: dict[str, Any] = {
        "id": make_id(number),
        "user_id": UserId(1),
        "username": "ada",
        "name": f"run-{number}",
        "gpu_type": QUAD.name,
        "gpu_count": 1,
        "duration": HOUR,
        "created_at": NOW - HOUR + number * MINUTE,
    }
    if status in PLACED:
        values |= {"node": NodeName("a"), "placed_at": NOW - 10 * MINUTE}
    if status is Status.ACTIVE:
        values |= {"launched_at": NOW, "expires_at": NOW + HOUR, "address": ADDRESS, "host_keys": HOST_KEYS}
    if status in TERMINAL:
        values |= {"node": NodeName("a"), "ended_at": NOW, "reason": Reason.TIME_IS_UP}
    return Reservation(**(values | changes))


def make_node(name: str = "a", *, slots: int = 4, free: int | None = None, **changes: Any) -> Node:
    values: dict[str, Any] = {"gpu_type": QUAD.name, "free_slots": slots if free is None else free} | changes
    return Node(name=NodeName(name), slots=slots, **values)


def make_server(number: int = 1, phase: ServerPhase = ServerPhase.READY, **changes: Any) -> ObservedServer:
    values: dict[str, Any] = {"uid": f"uid-{number}", "node": NodeName("a"), "detail": ""}
    if phase is ServerPhase.READY:
        values |= {"address": ADDRESS, "host_keys": HOST_KEYS}
    return ObservedServer(reservation_id=make_id(number), phase=phase, **(values | changes))


def make_cancel(number: int = 1) -> Operation:
    return Operation(OperationId(f"operation-{number}"), OperationKind.CANCEL, NOW)


def make_extension(length: timedelta, *, number: int = 1, not_before: datetime | None = None) -> Operation:
    terms = Terms(length, not_before)
    return Operation(OperationId(f"extension-{number}"), OperationKind.EXTEND, NOW, terms)
