"""Reservations on the wire. The contract calls one a job.

The text under a field is its description in the OpenAPI document.
"""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from typing import Annotated

from gpudev.texts.vocabulary import (
    QUEUE_MOVE,
    EventKind,
    OperationKind,
    OperationStatus,
    Outcome,
    Reason,
    Status,
)
from gpudev.wire.message import message
from gpudev.wire.text import DiskSize, Flag, Line, Name, Text, Within, Word

Hours = Annotated[float, Within(1 / 12, 24)]
StatusWord = Annotated[str, Word(*Status)]
ReasonWord = Annotated[str, Word(*Reason)]
EventWord = Annotated[str, Word(*EventKind, QUEUE_MOVE)]
ActionWord = Annotated[str, Word(*OperationKind)]
ProgressWord = Annotated[str, Word(*OperationStatus)]
OutcomeWord = Annotated[str, Word(*Outcome)]
Image = Annotated[str, Text(2000)]
PublicKey = Annotated[str, Text(8192, has_lines=True, code="bad_ssh_key")]
EnvironmentName = Annotated[str, Text(200, code="bad_env_var")]
EnvironmentValue = Annotated[str, Text(32_768, has_lines=True, code="bad_env_var")]


@message
class SubmitRequest:
    """What is asked for. A field with nothing behind it yet is refused with `not_supported_yet`."""

    gpu_type: Name
    """A type that `/v1/gpu/availability` lists, in any letter case."""
    gpu_count: int
    """How many: 1, 2, 4 or 8, up to the node's size; 0 for the CPU types; with `distributed`, those of
    several whole nodes."""
    duration_hours: Hours
    """For how long, counted from the moment the dev server answers: 5 minutes to 24 hours."""
    name: Name | None = None
    """`[a-z0-9-]{1,40}`, not all hexadecimal, unique among one's live reservations. Left out: one is made."""
    image: Image | None = None
    """Container image instead of the standard one; on one machine it is not supported."""
    dockerfile: Annotated[str, Text(1_000_000, has_lines=True)] | None = None
    """Build context with a Dockerfile, as base64 of a tar.gz. Not supported yet."""
    preserve_entrypoint: Flag | None = None
    """Run the entry point of one's own image. Not supported yet."""
    disk_name: Name | None = None
    """The disk that becomes the home, made if there is none of that name; `none` for a home that is not kept.
    Left out: the disk `default`, or none while another of one's live reservations has it."""
    no_persistent_disk: Flag | None = None
    """The same as the disk name `none`."""
    disk_size_gb: DiskSize | None = None
    """Size of a disk that is made for this, 10 to 10000 GB. Left out: 100."""
    jupyter_enabled: Flag | None = None
    """Start Jupyter Lab as well. Not supported yet."""
    recreate_env: Flag | None = None
    """Make the shell environment on the disk anew. Not supported yet."""
    distributed: Flag | None = None
    """The GPUs are those of 2 to 4 whole nodes, which start and end together. `RANK`, `NODE_RANK`,
    `WORLD_SIZE`, `MASTER_ADDR`, `MASTER_PORT` and `MULTINODE_HOSTS` are set there. Not all types have it."""
    node_labels: dict[Name, Name] | None = None
    """Only nodes with these labels, from the operator's list."""
    env_vars: dict[EnvironmentName, EnvironmentValue] = field(default_factory=dict)
    """Environment of the dev server. `NVIDIA_*`, `GPU_DEV_*` and `CUDA_VISIBLE_DEVICES` are reserved."""
    command: Annotated[str, Text(32_768, has_lines=True)] | None = None
    """Run this once after the start. Not supported yet."""
    start_at: datetime | None = None
    """Book for this time, at most 30 days ahead: it starts then, rounded up to five minutes, or is refused
    with the nearest time that makes nobody late. Left out: as soon as there is room."""
    ssh_public_keys: list[PublicKey] = field(default_factory=list)
    """Keys that may log in, each as in a `.pub` file: ed25519, rsa, ecdsa or sk-, at most 100."""
    github_user: Name | None = None
    """The public keys of this GitHub user may log in, too."""
    client_version: Annotated[str, Text(200, code="bad_client_version")] | None = None
    """Version of the client; left out: the one in `X-GPU-Dev-Client`."""
    time_zone: Annotated[str, Text(64, code="bad_time_zone")] | None = None
    """IANA name of the zone in which notices on the server and notifications tell times, for example
    `Europe/Berlin`. Left out: the one in `X-GPU-Dev-Time-Zone`, or UTC."""


@message
class SubmitRequest03:
    """The form of clients of version 0.3: most of what is asked for is in `env_vars`.

    `GPU_TYPE`, `GPU_COUNT`; `RESERVATION_ID`: a UUID that becomes the id; `GITHUB_USER`: whose keys may log
    in; `POD_NAME`: the name, changed as far as it must be; `JUPYTER_ENABLED`, `RECREATE_ENV` and
    `PRESERVE_ENTRYPOINT`: `"true"`; `USER_ID` is not looked at. All others go to the dev server. A body is
    of this form if it has neither `gpu_type` nor `gpu_count`. Without `GPU_TYPE` it asks for an a100, without
    `GPU_COUNT` for one GPU.
    """

    duration_hours: Hours
    """For how long, counted from the moment the dev server answers: 5 minutes to 24 hours."""
    env_vars: dict[EnvironmentName, EnvironmentValue] = field(default_factory=dict)
    """What is asked for, and the environment of the dev server."""
    image: Image | None = None
    """`pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime` means the standard one; others are refused so far."""
    instance_type: Name | None = None
    """Not looked at: it follows from the GPU type."""
    disk_name: Name | None = None
    """The disk that becomes the home, made if there is none of that name; `none` for none."""
    disk_size_gb: DiskSize | None = None
    """Size of a disk that is made for this, 10 to 10000 GB. Left out: 100."""
    command: Annotated[str, Text(32_768, has_lines=True)] | None = None
    """Run this once after the start. Not supported yet."""


@message
class SubmitResponse:
    job_id: str
    """Id of the reservation."""
    reservation_id: str
    """The same id."""
    status: StatusWord
    """`pending` for a new one; a repeat is told where the reservation is now."""
    message: str
    """What was accepted, and what of the request was not looked at."""
    queue_position: int | None = None
    """Place in the queue, if it waits in it."""
    estimated_start_time: datetime | None = None
    """When it is expected to start, if that is known."""
    warning: str | None = None
    """What of the request was not looked at."""


@message
class JobNode:
    """One node of a reservation that has several."""

    rank: int
    """Counts the nodes from 0."""
    node: str
    """Name of the node."""
    pod_name: str
    """Name of the dev server's part there."""
    node_ip: str | None = None
    """Where it answers on SSH, while the reservation is active."""
    node_port: int | None = None
    """The port there."""
    ssh_command: str | None = None
    """Works as it stands while the reservation is active."""
    ssh_host_keys: list[str] | None = None
    """Lines for a known_hosts file."""


@message
class JobDetail:
    """A reservation as its owner sees it. What is not known is left out of the JSON, never null."""

    job_id: str
    """Id of the reservation."""
    reservation_id: str
    """The same id."""
    user_id: str
    """The username."""
    status: StatusWord
    """Where it is."""
    gpu_type: str
    """Type of the GPUs."""
    gpu_count: int
    """How many of them, on all nodes together; 0 for the CPU types."""
    duration_hours: float
    """How long it was asked for."""
    created_at: datetime
    """When it was asked for."""
    name: str
    """What its owner calls it."""
    version: int
    """Grows with every change."""
    jupyter_enabled: bool = False
    """Whether Jupyter Lab runs there."""
    secondary_users: list[str] = field(default_factory=list)
    """Other people who may log in."""
    oom_count: int = 0
    """How often something there was ended for want of memory."""
    simulated: bool | None = None
    """True where the GPUs are simulated; left out where they are real."""
    instance_type: str | None = None
    """Kind of the machine."""
    expires_at: datetime | None = None
    """When its time is over; known once it is active."""
    launched_at: datetime | None = None
    """When it became active."""
    outcome: OutcomeWord | None = None
    """What became of the command that `gpu-dev submit` ran there. Left out: there is none, or it has not
    ended."""
    exit_code: int | None = None
    """Of that command; left out where it is not known."""
    reservation_ended: datetime | None = None
    """When it ended, in whatever way."""
    pod_name: str | None = None
    """Name of the dev server."""
    node_ip: str | None = None
    """Where the dev server answers on SSH, while it is active."""
    node_port: int | None = None
    """The port there."""
    ssh_command: str | None = None
    """Works as it stands while the reservation is active."""
    ssh_host_keys: list[str] | None = None
    """Lines for a known_hosts file."""
    ssh_proxy_url: str | None = None
    """Address of the SSH proxy, or `/` for that of the API, where the dev server is to be reached by that."""
    disk_name: str | None = None
    """The disk that is its home; left out: the home is not kept."""
    ebs_volume_id: str | None = None
    """The volume of that disk, once the dev server is there."""
    nodes: list[JobNode] | None = None
    """Where there are several: each of them, in the order of their ranks, once it is placed. The fields above
    tell of rank 0."""
    github_user: str | None = None
    """The GitHub user whose keys may log in besides those that were sent."""
    queue_position: int | None = None
    """Place in the queue of its type, while it waits."""
    estimated_wait_minutes: int | None = None
    """The same as `estimated_start_at`, counted from now."""
    estimated_start_at: datetime | None = None
    """While it waits: when it starts at the latest. Failures aside, this moves earlier only."""
    likely_start: list[datetime] | None = None
    """While it waits: from when to when it will probably start, by what was learned of others."""
    start_at: datetime | None = None
    """The time that it is booked for."""
    reason: ReasonWord | None = None
    """Why it is where it is, as a constant."""
    failure_reason: str | None = None
    """Why it failed, in words."""
    current_detailed_status: str | None = None
    """Where it is, in words."""
    hint: str | None = None
    """What one can do about the reason."""
    warning: str | None = None
    """What of the request was not looked at, and that its end is near."""
    extension_error: str | None = None
    """Why the last extension was refused; an extension that is granted clears it."""
    stopped_at: datetime | None = None
    """When it was stopped; while it is, `duration_hours` is the time that it has left."""
    kept_until: datetime | None = None
    """Until then it is not ended for being idle."""
    last_oom_at: datetime | None = None
    """When something there was last ended for want of memory."""
    last_updated: datetime | None = None
    """When it changed last."""
    cli_version: str | None = None
    """Version of the client that asked for it."""


@message
class JobList:
    jobs: list[JobDetail]
    """This page of them, newest first."""
    total: int
    """How many there are on all pages."""
    limit: int
    """The most on a page."""
    offset: int
    """How many come before this page."""


@message
class ExtendRequest:
    extension_hours: Annotated[float, Within(0, 48, without_first=True)]
    """By how many hours, counted from the present end; more than 0."""


@message
class KeepRequest:
    hours: Annotated[float, Within(0, 48, without_first=True)]
    """For how long, from now; more than 0 and at most 48."""
    reason: Line = ""
    """Why it is to be kept although nobody uses it; it is shown in its events."""


@message
class StartRequest:
    """What a stopped reservation is started with; what is left out stays as it was."""

    gpu_type: Name = ""
    """Another type of GPU, or of a node without any."""
    gpu_count: Annotated[int, Within(0, 1024)] | None = None
    """How many GPUs; 0 for a node without any."""
    distributed: bool = False
    """The GPUs may be on several whole nodes."""


@message
class UsagePoint:
    """The means of a stretch of time. What was not measured is left out."""

    at: datetime
    """When the stretch begins."""
    idle_share: float
    """The part of it in which nobody used the server, 0 to 1."""
    gpu_percent: float | None = None
    """Use of the busiest GPU."""
    gpu_memory_percent: float | None = None
    """Memory in use on the fullest GPU."""
    cpu_cores: float | None = None
    """CPU cores that were busy."""


@message
class JobUsage:
    job_id: str
    """Id of the reservation."""
    simulated: bool
    """True where the figures of the GPUs are declared, because the GPUs are."""
    points: list[UsagePoint]
    """Stretches of equal length, the oldest first; one of which nothing is known is left out."""


@message
class ActionResponse:
    """A requested action; follow it at `/v1/operations/{operation_id}`."""

    job_id: str
    """Id of the reservation."""
    action: ActionWord
    """What was requested."""
    status: str
    """Always `requested`: a controller carries it out."""
    message: str
    """The same in words."""
    operation_id: str
    """By which its outcome can be asked for."""


@message
class OperationDetail:
    operation_id: str
    """Id of the operation."""
    action: ActionWord
    """What was requested."""
    status: ProgressWord
    """How far it is."""
    started_at: datetime
    """When it was requested."""
    error: str | None = None
    """Why it failed, in words."""
    finished_at: datetime | None = None
    """When it was done or failed."""


@message
class JobEvent:
    """One Server-Sent Event of `/v1/jobs/{id}/events`; its number is the SSE id."""

    number: int
    """Counts the events of the reservation from 1."""
    kind: EventWord
    """What happened. `cleaned` means that nothing more will happen. `position` is not an event of the
    history: it tells of a change in the queue, and has the number of the event before."""
    message: str
    """What happened, in words, with times in the zone of the reader."""
    at: datetime
    """When it happened."""
    elapsed_seconds: float
    """How long after the event before."""
    status: StatusWord
    """The reservation's status now, which may be later than this event."""
    reason: ReasonWord | None = None
    """Why, as a constant."""
    queue_position: int | None = None
    """Place in the queue now, while it waits."""
    estimated_start_at: datetime | None = None
    """When it is expected to start, while it waits."""
    likely_start: list[datetime] | None = None
    """While it waits: from when to when it will probably start."""
    key: str | None = None
    """What happened, as a constant; `words` for an event of which only the words are known."""
    data: dict[str, object] | None = None
    """The names, numbers and times that belong to the key: times as ISO 8601 in UTC, lengths in seconds. A
    value with a `key` and `data` of its own is such a fact itself."""
