"""The cluster, health and login on the wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeAvailability:
    gpu_type: str
    total: int
    available: int
    in_use: int
    queued: int
    """Requests that wait for this type."""
    max_per_node: int
    max_reservable: int
    full_nodes_available: int
    simulated: bool
    """There are no such GPUs: the fleet pretends to have them."""
    estimated_wait_minutes: int | None = None
    """For a new request of one GPU; left out when one is free now or when no node is in service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AvailabilityResponse:
    availability: dict[str, TypeAvailability]
    timestamp: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    total_gpus: int
    available_gpus: int
    in_use_gpus: int
    queued_gpus: int
    active_reservations: int
    preparing_reservations: int
    queued_reservations: int
    pending_reservations: int
    by_gpu_type: dict[str, TypeAvailability]
    timestamp: datetime
    notices: list[str] = field(default_factory=list)
    """What a user should know of this cluster: simulated GPUs, dev servers without isolation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLoginRequest:
    """Proof that the caller can read the server owner's login file, without sending what is in it.

    `proof` is the hexadecimal HMAC-SHA256, keyed with the file's contents, of three lines joined by
    newlines: timestamp, nonce, and the host:port that the client was configured with. A proof is accepted
    once, within a minute of its timestamp (seconds since 1970).
    """

    timestamp: int
    nonce: str
    proof: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginResponse:
    api_key: str
    key_prefix: str
    user_id: int
    username: str
    expires_at: datetime
    ttl_hours: int
    aws_arn: str | None = None
    """Who one is by the word of AWS, after a login by AWS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhoAmI:
    user_id: int
    username: str
    aws_arn: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    status: str
    database: str
    queue: str
    timestamp: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBody:
    """Every error but 422, whose `detail` is a list as FastAPI makes it."""

    detail: str
    code: str
    hint: str = ""
