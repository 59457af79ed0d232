"""The cluster, the queue, health, login and errors on the wire."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from typing import Annotated

from gpudev.texts.vocabulary import WAITING, Reason
from gpudev.wire.message import message
from gpudev.wire.text import Name, Word


@message
class TypeAvailability:
    gpu_type: str
    """Name of the type."""
    total: int
    """GPUs in service; for the CPU types, places."""
    available: int
    """Those that are free."""
    in_use: int
    """Those that are lent."""
    queued: int
    """GPUs that waiting requests want; for the CPU types, places."""
    max_per_node: int
    """GPUs of one node."""
    max_reservable: int
    """The most that one reservation can get now."""
    full_nodes_available: int
    """Nodes that are free as a whole."""
    simulated: bool
    """There are no such GPUs: the fleet pretends to have them."""
    estimated_wait_minutes: int | None = None
    """For a new request of one GPU; left out when one is free now or when no node is in service."""


@message
class AvailabilityResponse:
    availability: dict[str, TypeAvailability]
    """Each type that is on offer, by name."""
    timestamp: datetime
    """When this was read."""


@message
class QueueEntry:
    """A reservation that waits. What it is called and why it waits is told to its owner alone."""

    gpu_count: int
    """How many GPUs it wants."""
    user_id: str
    """Whose it is: the username."""
    is_own: bool
    """Whether it is the caller's."""
    status: Annotated[str, Word(*WAITING)]
    """queued, or pending: not looked at yet."""
    created_at: datetime
    """When it was asked for."""
    duration_hours: float
    """How long it was asked for."""
    position: int | None = None
    """Place in the queue of its type, from 1; left out while it is pending."""
    estimated_start_at: datetime | None = None
    """When it starts at the latest; left out when that is not known."""
    likely_start: list[datetime] | None = None
    """From when to when it will probably start; left out where too little is known."""
    start_at: datetime | None = None
    """The time that it is booked for."""
    estimated_wait_minutes: int | None = None
    """The same, counted from now."""
    job_id: str | None = None
    """Id of one's own."""
    name: str | None = None
    """Name of one's own."""
    reason: Annotated[str, Word(*Reason)] | None = None
    """Why one's own waits, as a constant."""
    current_detailed_status: str | None = None
    """Why one's own waits, in words that name what is in the way."""


@message
class QueueResponse:
    queue: dict[str, list[QueueEntry]]
    """Who waits for each type, in the order in which they came; types that nobody waits for are left out."""
    total: int
    """How many wait in all."""
    timestamp: datetime
    """When this was read."""


@message
class ClusterStatus:
    total_gpus: int
    """GPUs in service, of all types."""
    available_gpus: int
    """Those that are free."""
    in_use_gpus: int
    """Those that are lent."""
    queued_gpus: int
    """GPUs that waiting requests want."""
    active_reservations: int
    """Reservations with a dev server that answers."""
    preparing_reservations: int
    """Reservations whose dev server starts."""
    queued_reservations: int
    """Reservations that wait with a place in the queue."""
    pending_reservations: int
    """Reservations that were not looked at yet."""
    by_gpu_type: dict[str, TypeAvailability]
    """The room of each type, by name."""
    timestamp: datetime
    """When this was read."""
    notices: list[str] = field(default_factory=list)
    """What a user should know of this cluster: simulated GPUs, dev servers without isolation."""


@message
class LocalLoginRequest:
    """Proof that the caller can read the server owner's login file, without sending what is in it.

    `proof` is the hexadecimal HMAC-SHA256, keyed with the file's contents, of three lines joined by
    newlines: timestamp, nonce, and the host:port that the client was configured with. A proof is accepted
    once, within a minute of its timestamp (seconds since 1970).
    """

    timestamp: int
    """Seconds since 1970."""
    nonce: Name
    """Any text that was not used before."""
    proof: Name
    """The hexadecimal HMAC-SHA256."""


@message
class LoginResponse:
    api_key: str
    """The key, to be sent as `Authorization: Bearer <api key>`. It is shown once."""
    key_prefix: str
    """Its first characters, by which it is known."""
    user_id: int
    """Number of the user."""
    username: str
    """Name of the user."""
    expires_at: datetime
    """When the key stops working."""
    ttl_hours: int
    """How long it works, in hours."""
    aws_arn: str | None = None
    """Who one is by the word of AWS, after a login by AWS."""
    github_user: str | None = None
    """Who one is at GitHub, where the server looks at that."""


@message
class QuotaStatus:
    """What one may have of a GPU type, and has. A limit that is left out is none; a CPU slot is a GPU."""

    gpu_type: str
    """Name of the type."""
    gpus: int
    """GPUs that run or start."""
    waiting: int
    """Requests that wait."""
    reserved_gpu_hours: float
    """GPU-hours of waiting requests, and what running reservations have left."""
    gpu_hours: float
    """GPU-hours that were used in the period, or are reserved."""
    period_days: float
    """Length of that period."""
    max_gpus: int | None = None
    """The most at once; further requests wait."""
    max_waiting: int | None = None
    """The most requests that may wait."""
    max_reserved_gpu_hours: float | None = None
    """The most that may be reserved at a time."""
    max_gpu_hours: float | None = None
    """The most in the period."""
    long_gpus: int | None = None
    """GPUs that are held for longer than 4 hours from now on; left out where they are not limited."""
    max_long_gpus: int | None = None
    """The most of those, a part of the GPUs in service; further long requests wait."""


@message
class WhoAmI:
    user_id: int
    """Number of the user."""
    username: str
    """Name of the user."""
    is_admin: bool = False
    """Whether the user may use the routes of admins."""
    aws_arn: str | None = None
    """Who one is by the word of AWS, where one logs in by AWS."""
    quotas: list[QuotaStatus] | None = None
    """One for each GPU type that is limited; left out where nothing is, and by servers that are older."""


@message
class Health:
    status: str
    """healthy or unhealthy; of `/ready` also degraded: requests are answered, but nothing goes on."""
    database: str
    """connected, or what is wrong with it."""
    queue: str
    """connected or unknown."""
    timestamp: datetime
    """When this was found."""
    controller: str | None = None
    """Of `/ready`: running, or what is wrong with it."""
    disk: str | None = None
    """Of `/ready` on one machine: ok, or that it is full."""
    failing: list[str] | None = None
    """Of `/ready`: chores that have failed several times in a row."""


@message
class ErrorBody:
    """Every error but 422, whose `detail` is a list."""

    detail: str
    """What happened to which thing, as a sentence."""
    code: str
    """The same as a constant, for programs."""
    hint: str = ""
    """What to do about it."""


@message
class FieldProblem:
    loc: list[str | int]
    """Where: `body`, `query` or `header`, then the name of the field."""
    msg: str
    """What is wrong with it."""
    type: str
    """The same as a constant."""


@message
class ValidationErrorBody:
    """A request that does not fit the schema."""

    detail: list[FieldProblem]
    """Each field that does not fit."""
    code: str
    """Always `bad_request_body`."""
    hint: str = ""
    """What to do about it."""
