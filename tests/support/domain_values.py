"""Short ways to make the domain's values for tests; every moment is counted from one fixed `NOW`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from gpudev.domain.capacity import Node
from gpudev.domain.catalogue import GpuType
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.names import NodeName, OperationId, ReservationId, UserId
from gpudev.domain.operations import Operation, Terms
from gpudev.domain.reservation import Reservation, Spec
from gpudev.domain.server import Member, ObservedMember, ObservedServer, ServerPhase, SshAddress
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import PLACED, TERMINAL, OperationKind, Reason, Status
from tests.support.parts import build

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


def make_spec(gpu_type: str, gpu_count: int, duration: timedelta, **more: Any) -> Spec:
    """What somebody asks for."""
    asker = {"user_id": UserId(1), "username": "", "name": ""}
    asked = {"gpu_type": gpu_type, "gpu_count": gpu_count, "duration": duration, "created_at": NOW}
    return Spec(**{**asker, **asked, **more})


def make_reservation(number: int = 1, **changes: Any) -> Reservation:
    """A pending request for one GPU and one hour, made `number` minutes before `NOW`, unless told otherwise.

    What belongs to a status (members, times, reason) is filled in, so that every value is one that can be.
    `nodes` or `node` stand for members there.
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
    nodes = _nodes_from(changes, ("a",) if status in (*PLACED, *TERMINAL) else ())
    is_active = status is Status.ACTIVE
    values["members"] = tuple(Member(node, *((ADDRESS, HOST_KEYS) if is_active else ())) for node in nodes)
    values["node_count"] = len(nodes) or 1
    if status in PLACED:
        values |= {"placed_at": NOW - 10 * MINUTE}
    if is_active:
        values |= {"launched_at": NOW, "expires_at": NOW + HOUR}
    if status in TERMINAL:
        values |= {"ended_at": NOW, "reason": Reason.TIME_IS_UP}
    return build(**(values | changes))


def _nodes_from(changes: dict[str, Any], default: tuple[str, ...]) -> tuple[NodeName, ...]:
    """The nodes that were told, taken out of the changes."""
    if "node" in changes:
        node = changes.pop("node")
        return (NodeName(node),) if node is not None else ()
    return tuple(NodeName(node) for node in changes.pop("nodes", default))


def make_node(name: str = "a", *, slots: int = 4, free: int | None = None, **changes: Any) -> Node:
    values: dict[str, Any] = {"gpu_type": QUAD.name, "free_slots": slots if free is None else free} | changes
    return Node(name=NodeName(name), slots=slots, **values)


def make_server(number: int = 1, phase: ServerPhase = ServerPhase.READY, **changes: Any) -> ObservedServer:
    """A server of one member, unless `members` are given; most other changes are the member's."""
    own = {name: changes.pop(name) for name in ("uid", "oom_kills", "last_oom_at") if name in changes}
    members = changes.pop("members", None) or (make_member(phase=phase, **changes),)
    return ObservedServer(make_id(number), **{"uid": f"uid-{number}", "members": members, **own})


_TOLD = ("detail", "progress", "warning")
"""What a member tells; as words, for short."""


def make_member(
    rank: int = 0, phase: ServerPhase = ServerPhase.READY, *, node: str = "a", **changes: Any
) -> ObservedMember:
    values: dict[str, Any] = {"node": NodeName(node), "rank": rank, "phase": phase}
    if phase is ServerPhase.READY:
        values |= {"address": ADDRESS, "host_keys": HOST_KEYS}
    told = {name: fact("words", words=changes[name]) for name in _TOLD if changes.get(name)}
    return ObservedMember(**(values | changes | told))


def make_cancel(number: int = 1) -> Operation:
    return Operation(OperationId(f"operation-{number}"), OperationKind.CANCEL, NOW)


def make_extension(length: timedelta, *, number: int = 1, not_before: datetime | None = None) -> Operation:
    terms = Terms(length, not_before)
    return Operation(OperationId(f"extension-{number}"), OperationKind.EXTEND, NOW, terms=terms)
