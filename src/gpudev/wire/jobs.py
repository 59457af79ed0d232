"""Reservations on the wire. The contract calls one a job."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitRequest:
    gpu_type: str
    gpu_count: int
    duration_hours: float
    name: str | None = None
    env_vars: dict[str, str] = field(default_factory=dict)
    ssh_public_keys: list[str] = field(default_factory=list)
    client_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitResponse:
    job_id: str
    reservation_id: str
    status: str
    message: str
    queue_position: int | None = None
    estimated_start_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetail:
    """A reservation as its owner sees it. What is not known is left out of the JSON, never null."""

    job_id: str
    reservation_id: str
    user_id: str
    """The username."""
    status: str
    gpu_type: str
    gpu_count: int
    duration_hours: float
    created_at: datetime
    name: str
    version: int
    jupyter_enabled: bool = False
    secondary_users: list[str] = field(default_factory=list)
    oom_count: int = 0
    simulated: bool | None = None
    """True where the GPUs are simulated; left out where they are real."""
    instance_type: str | None = None
    expires_at: datetime | None = None
    launched_at: datetime | None = None
    reservation_ended: datetime | None = None
    pod_name: str | None = None
    node_ip: str | None = None
    node_port: int | None = None
    ssh_command: str | None = None
    """Works as it stands while the reservation is active."""
    ssh_host_keys: list[str] | None = None
    """Lines for a known_hosts file."""
    queue_position: int | None = None
    estimated_wait_minutes: int | None = None
    estimated_start_at: datetime | None = None
    reason: str | None = None
    failure_reason: str | None = None
    current_detailed_status: str | None = None
    hint: str | None = None
    """What one can do about the reason."""
    last_updated: datetime | None = None
    cli_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobList:
    jobs: list[JobDetail]
    total: int
    limit: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionResponse:
    """A requested action; follow it at `/v1/operations/{operation_id}`."""

    job_id: str
    action: str
    status: str
    message: str
    operation_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationDetail:
    operation_id: str
    action: str
    status: str
    """requested, done or failed."""
    started_at: datetime
    error: str | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """One Server-Sent Event of `/v1/jobs/{id}/events`; its number is the SSE id."""

    number: int
    kind: str
    """submitted, queued, placed, requeued, active, expired, cancelled, failed or cleaned; the last one
    means that nothing more will happen."""
    message: str
    at: datetime
    elapsed_seconds: float
    status: str
    """The reservation's status now, which may be later than this event."""
    reason: str | None = None
    queue_position: int | None = None
    estimated_start_at: datetime | None = None
