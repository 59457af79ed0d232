"""Wire values for tests of the client and the CLI."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from gpudev.client import codec
from gpudev.wire.cluster import (
    AvailabilityResponse,
    ClusterStatus,
    QueueEntry,
    QueueResponse,
    TypeAvailability,
)
from gpudev.wire.jobs import JobDetail, JobEvent, JobNode

NOW = datetime(2030, 1, 15, 14, 0, tzinfo=UTC)
JOB_ID = "7f3a91c2-1111-4222-8333-444455556666"

A_JOB = JobDetail(
    job_id=JOB_ID,
    reservation_id=JOB_ID,
    user_id="ada",
    status="pending",
    gpu_type="h100",
    gpu_count=2,
    duration_hours=4.0,
    created_at=NOW - timedelta(minutes=10),
    name="train",
    version=1,
)
ACTIVE = replace(
    A_JOB,
    status="active",
    launched_at=NOW - timedelta(minutes=9),
    expires_at=NOW + timedelta(hours=3, minutes=51),
    node_ip="127.0.0.1",
    node_port=30022,
    ssh_command="ssh -p 30022 dev@127.0.0.1",
    ssh_host_keys=["[127.0.0.1]:30022 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI"],
    current_detailed_status="The dev server answers on SSH.",
)
GANG = replace(
    ACTIVE,
    gpu_count=16,
    nodes=[
        JobNode(
            rank=rank,
            node=f"h100-{rank}",
            pod_name="gpu-dev-7f3a91c2-1" if rank else "gpu-dev-7f3a91c2",
            node_ip="127.0.0.1",
            node_port=30022 + rank,
            ssh_command=f"ssh -p {30022 + rank} dev@127.0.0.1",
            ssh_host_keys=[f"[127.0.0.1]:{30022 + rank} ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{rank}"],
        )
        for rank in range(2)
    ],
)
QUEUED = replace(
    A_JOB,
    status="queued",
    queue_position=2,
    estimated_start_at=NOW + timedelta(minutes=35),
    reason="waiting_for_capacity",
    current_detailed_status="Not enough GPUs of this type are free on any one node.",
)
FAILED = replace(
    A_JOB,
    status="failed",
    reservation_ended=NOW - timedelta(minutes=3),
    reason="start_failed",
    failure_reason="The dev server could not be started.",
)

H100 = TypeAvailability(
    gpu_type="h100",
    total=16,
    available=3,
    in_use=13,
    queued=0,
    max_per_node=8,
    max_reservable=2,
    full_nodes_available=0,
    simulated=False,
)
SIMULATED_T4 = TypeAvailability(
    gpu_type="t4",
    total=4,
    available=0,
    in_use=4,
    queued=3,
    max_per_node=4,
    max_reservable=0,
    full_nodes_available=0,
    simulated=True,
    estimated_wait_minutes=95,
)
AVAILABILITY = AvailabilityResponse(availability={"h100": H100, "t4": SIMULATED_T4}, timestamp=NOW)
STATUS = ClusterStatus(
    total_gpus=20,
    available_gpus=3,
    in_use_gpus=17,
    queued_gpus=6,
    active_reservations=5,
    preparing_reservations=1,
    queued_reservations=3,
    pending_reservations=0,
    by_gpu_type={"h100": H100, "t4": SIMULATED_T4},
    timestamp=NOW,
    notices=["The t4 GPUs are simulated: they do not exist."],
)


WAITING = QueueResponse(
    queue={
        "h100": [
            QueueEntry(
                gpu_count=8,
                user_id="eve",
                is_own=False,
                status="queued",
                created_at=NOW - timedelta(minutes=12),
                duration_hours=24.0,
                position=1,
                estimated_start_at=NOW + timedelta(minutes=5),
                estimated_wait_minutes=5,
            ),
            QueueEntry(
                gpu_count=2,
                user_id="ada",
                is_own=True,
                status="queued",
                created_at=NOW - timedelta(minutes=10),
                duration_hours=4.0,
                position=2,
                estimated_start_at=NOW + timedelta(minutes=35),
                estimated_wait_minutes=35,
                job_id=JOB_ID,
                name="train",
                reason="waiting_in_line",
                current_detailed_status="Earlier requests for this type go first.",
            ),
        ],
        "t4": [
            QueueEntry(
                gpu_count=1,
                user_id="eve",
                is_own=False,
                status="queued",
                created_at=NOW - timedelta(minutes=2),
                duration_hours=0.5,
                position=1,
            ),
            QueueEntry(
                gpu_count=4,
                user_id="ada",
                is_own=True,
                status="pending",
                created_at=NOW,
                duration_hours=1.0,
                job_id="0a1b2c3d-1111-4222-8333-444455556666",
                name="fresh",
            ),
        ],
    },
    total=4,
    timestamp=NOW,
)


def an_event(number: int, kind: str, status: str, message: str = "It happened.", **more: Any) -> JobEvent:
    return JobEvent(
        number=number,
        kind=kind,
        message=message,
        at=NOW + timedelta(seconds=number),
        elapsed_seconds=1.5,
        status=status,
        **more,
    )


def as_sse(*events: JobEvent) -> str:
    return "".join(
        f"id: {event.number}\nevent: {event.kind}\ndata: {codec.dumps(event)}\n\n" for event in events
    )
