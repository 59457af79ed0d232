"""Nodes in words: which take reservations, and what is still on those that do not."""

from __future__ import annotations

from collections.abc import Sequence

from gpudev.cli.render.table import format_table
from gpudev.cli.render.times import Now, format_moment
from gpudev.client.ssh import id8
from gpudev.wire.admin import NodeChanged, NodeDetail, NodeReservation


def format_nodes(nodes: Sequence[NodeDetail], now: Now, width: int | None = None) -> str:
    header = ("NODE", "TYPE", "SLOTS", "STATE", "RESERVATIONS", "UNTIL", "REASON")
    rows = [
        (
            node.name,
            node.gpu_type,
            str(node.slots),
            node.state.replace("_", " "),
            str(len(node.reservations)),
            _last_end(node, now),
            node.reason or "-",
        )
        for node in nodes
    ]
    return format_table(header, rows, frozenset({2, 4}), width)


def format_change(changed: NodeChanged, now: Now, width: int | None = None) -> str:
    """What was done and, on a node that is being drained, what it still waits for."""
    if changed.node.state != "draining":
        return changed.message
    return f"{changed.message}\n{_format_reservations(changed.node.reservations, now, width)}"


def _format_reservations(reservations: Sequence[NodeReservation], now: Now, width: int | None) -> str:
    header = ("ID", "USER", "NAME", "STATUS", "GPUS", "UNTIL")
    rows = [
        (
            id8(one.job_id),
            one.user,
            one.name,
            one.status,
            str(one.gpu_count),
            format_moment(one.expires_at, now) if one.expires_at else "-",
        )
        for one in reservations
    ]
    return format_table(header, rows, frozenset({4}), width)


def _last_end(node: NodeDetail, now: Now) -> str:
    """When it is empty at the latest, if nothing new comes."""
    ends = [one.expires_at for one in node.reservations if one.expires_at]
    return format_moment(max(ends), now) if ends else "-"
