"""Rows to values: the one place that knows which column is which field of a reservation."""

from __future__ import annotations

from gpudev.adapters.postgres.pool import Row
from gpudev.domain.lifecycle import Status
from gpudev.domain.names import NodeName, ReservationId, UserId
from gpudev.domain.reservation import Event, EventKind, Reason, Reservation
from gpudev.domain.server import SshAddress
from gpudev.ports.store import StoredEvent


def reservation_from(row: Row) -> Reservation:
    return Reservation(
        id=ReservationId(str(row["reservation_id"])),
        user_id=UserId(row["user_id"]),
        username=row["username"],
        name=row["name"],
        gpu_type=row["gpu_type"],
        gpu_count=row["gpu_count"],
        duration=row["duration"],
        created_at=row["created_at"],
        status=Status(row["status"]),
        reason=Reason(row["reason"]) if row["reason"] else None,
        detail=row["detail"],
        env_vars=row["env_vars"],
        ssh_public_keys=tuple(row["ssh_public_keys"]),
        client_version=row["cli_version"],
        github_user=row["github_user"],
        warning=row["warning"],
        node=NodeName(row["node_name"]) if row["node_name"] else None,
        address=SshAddress(row["node_ip"], row["node_port"]) if row["node_ip"] else None,
        host_keys=tuple(row["ssh_host_keys"]),
        queue_position=row["queue_position"],
        estimated_start_at=row["estimated_start_at"],
        last_queue_update=row["last_queue_update"],
        placed_at=row["placed_at"],
        launched_at=row["launched_at"],
        expires_at=row["expires_at"],
        ended_at=row["reservation_ended"],
        cancelled_at=row["cancelled_at"],
        cleaned_at=row["cleaned_at"],
        last_updated=row["last_updated"],
        version=row["version"],
    )


def event_from(row: Row) -> StoredEvent:
    event = Event(
        kind=EventKind(row["kind"]),
        message=row["message"],
        at=row["at"],
        reason=Reason(row["reason"]) if row["reason"] else None,
    )
    return StoredEvent(number=row["number"], event=event, elapsed=row["elapsed"])
