"""Nodes that are taken out of service kindly: nothing new goes there, and who is there stays until the end.

A drain is an admin's word, beside what the cluster itself says of its nodes. Neither ends a reservation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from gpudev.domain.capacity import Node
from gpudev.domain.errors import Conflict, Invalid
from gpudev.domain.names import NodeName
from gpudev.domain.reservation import Reservation
from gpudev.texts.fact import Fact, fact
from gpudev.texts.vocabulary import NodeState

MAX_REASON = 200
_NOT_IN_A_LINE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Drain:
    """A node that is being taken out of service, or is out of it."""

    node: NodeName
    gpu_type: str
    reason: str = ""
    is_empty: bool = False
    """It was seen that no reservation holds room there."""


def read_reason(text: str) -> str:
    """One line that may be shown on terminals; its last full stop is ours."""
    reason = text.strip().rstrip(".")
    if _NOT_IN_A_LINE.search(reason) or len(reason) > MAX_REASON:
        raise Invalid("bad_drain_reason", most=MAX_REASON, code="bad_reason")
    return reason


def find_state(*, is_present: bool, is_schedulable: bool, is_drained: bool, has_holders: bool) -> NodeState:
    if not is_present:
        return NodeState.GONE
    if is_drained:
        return NodeState.DRAINING if has_holders else NodeState.DRAINED
    return NodeState.IN_SERVICE if is_schedulable else NodeState.CLOSED


def take_out(nodes: Iterable[Node], drains: Iterable[Drain]) -> tuple[Node, ...]:
    """The nodes, of which those that are drained take nothing new."""
    drained = {drain.node for drain in drains}
    return tuple(replace(node, is_schedulable=False) if node.name in drained else node for node in nodes)


def list_emptied(
    drains: Iterable[Drain], gpu_type: str, holders: Iterable[Reservation]
) -> tuple[NodeName, ...]:
    """The drained nodes of a type that nobody holds room on any more, and of which that was not noted yet."""
    taken = {node for holder in holders if holder.holds_room for node in holder.nodes}
    return tuple(
        drain.node
        for drain in drains
        if drain.gpu_type == gpu_type and not drain.is_empty and drain.node not in taken
    )


def list_concerning(reservation: Reservation, drains: Iterable[Drain]) -> tuple[Drain, ...]:
    """The drains of its nodes, by rank."""
    by_node = {drain.node: drain for drain in drains}
    return tuple(by_node[node] for node in reservation.nodes if node in by_node)


def check_stays(reservation: Reservation, drains: Iterable[Drain]) -> None:
    """Refuse more time on a node that is to become empty."""
    concerning = list_concerning(reservation, drains)
    if concerning:
        raise Conflict(
            "extension_on_leaving_nodes",
            reservation=reservation.id,
            nodes=[drain.node for drain in concerning],
            reasons=list(dict.fromkeys(drain.reason for drain in concerning if drain.reason)),
            code="node_is_leaving",
        )


def tell_of_drain(reservation: Reservation, drains: Iterable[Drain]) -> Fact | None:
    """For the people on a running server, the same everywhere; None if its nodes stay."""
    concerning = list_concerning(reservation, drains)
    if not concerning:
        return None
    return fact(
        "node_leaves",
        nodes=[drain.node for drain in concerning],
        reasons=list(dict.fromkeys(drain.reason for drain in concerning if drain.reason)),
        name=reservation.spec.name,
        reservation=reservation.id,
        end=reservation.state.expires_at,
    )


def tell_of_stay(reservation: Reservation) -> Fact:
    """What is told when a drain was called off."""
    name = reservation.spec.name
    return fact("node_stays", nodes=reservation.nodes, name=name, reservation=reservation.id)
