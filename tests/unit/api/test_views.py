"""Views make what the wire describes."""

from __future__ import annotations

from dataclasses import MISSING, fields
from datetime import timedelta
from typing import Any

import pytest

from gpudev.api.views import job_detail
from gpudev.app.application import ClusterInfo
from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.domain.disk import VolumeId
from gpudev.domain.names import NodeName, UserId
from gpudev.domain.reservation import Reservation
from gpudev.domain.server import Member, SshAddress
from gpudev.ports.users import User
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import Outcome, Reason, Status
from gpudev.wire.jobs import JobDetail, JobNode
from tests.support.parts import change
from tests.support.reservations import NOON, make_reservation

CLUSTER = ClusterInfo(
    DEFAULT_CATALOGUE, simulated_types=frozenset({"t4"}), ssh_proxy_url="https://gpu-dev.example.org"
)
LATER = NOON + timedelta(hours=1)
STATES: dict[Status, dict[str, Any]] = {
    Status.PENDING: {},
    Status.QUEUED: {
        "reason": Reason.NO_NODES,
        "queue_position": 3,
        "estimated_start_at": LATER,
        "likely_start": (NOON, LATER),
        "start_at": LATER,
    },
    Status.PREPARING: {"members": (Member(NodeName("t4-0")),)},
    Status.ACTIVE: {
        "node_count": 2,
        "members": tuple(
            Member(NodeName(f"t4-{rank}"), SshAddress("10.0.0.1", 30000 + rank), (f"ssh-ed25519 A{rank}",))
            for rank in range(2)
        ),
        "launched_at": NOON,
        "expires_at": LATER,
        "warned_minutes": 30,
        "extension_error": "Too long.",
        "oom_count": 1,
        "last_oom_at": NOON,
        "kept_until": LATER,
        "disk_name": "work",
        "volume_id": VolumeId("vol-1"),
    },
    Status.STOPPED: {"reason": Reason.STOPPED_BY_USER, "stopped_at": NOON},
    Status.EXPIRED: {
        "reason": Reason.TIME_IS_UP,
        "ended_at": LATER,
        "outcome": Outcome.TIMED_OUT,
        "exit_code": 143,
    },
    Status.CANCELLED: {"reason": Reason.CANCELLED_BY_USER, "ended_at": LATER},
    Status.FAILED: {
        "reason": Reason.START_FAILED,
        "ended_at": LATER,
        "client_version": "1.0",
        "github_user": "ada",
        "warnings": (fact("words", words="Look out."),),
    },
}


def in_state(status: Status) -> Reservation:
    user = User(UserId(1), "ada")
    return make_reservation(user, status=status, last_updated=NOON, **STATES[status])


@pytest.mark.parametrize("status", Status, ids=str)
def test_a_job_has_what_the_wire_describes_and_nothing_else(status: Status) -> None:
    shown = job_detail(in_state(status), CLUSTER, NOON)
    known = {field.name for field in fields(JobDetail)}
    always = {
        field.name
        for field in fields(JobDetail)
        if field.default is not None or field.default_factory is not MISSING
    }
    assert always <= set(shown) <= known
    assert None not in shown.values()


def show(reservation: Reservation) -> dict[str, Any]:
    return job_detail(reservation, CLUSTER, NOON)


def test_a_gang_shows_each_of_its_nodes_and_rank_0_as_the_reservation() -> None:
    active = in_state(Status.ACTIVE)
    shown = show(active)
    assert [{field: node[field] for field in ("rank", "node", "ssh_command")} for node in shown["nodes"]] == [
        {"rank": 0, "node": "t4-0", "ssh_command": "ssh -p 30000 dev@10.0.0.1"},
        {"rank": 1, "node": "t4-1", "ssh_command": "ssh -p 30001 dev@10.0.0.1"},
    ]
    assert [node["pod_name"] for node in shown["nodes"]] == [
        f"gpu-dev-{active.id8}",
        f"gpu-dev-{active.id8}-1",
    ]
    assert shown["nodes"][1]["ssh_host_keys"] == ["[10.0.0.1]:30001 ssh-ed25519 A1"]
    assert shown["ssh_command"] == shown["nodes"][0]["ssh_command"]
    assert {name for node in shown["nodes"] for name in node} == {field.name for field in fields(JobNode)}


def test_a_gang_that_is_not_active_shows_its_nodes_without_addresses() -> None:
    ended = change(in_state(Status.ACTIVE), status=Status.FAILED)
    assert set(show(ended)["nodes"][0]) == {"rank", "node", "pod_name"}
    assert "nodes" not in show(change(in_state(Status.QUEUED), node_count=2))
    assert "nodes" not in show(in_state(Status.PREPARING))


def test_all_that_the_wire_describes_is_shown_in_some_state() -> None:
    shown = {name for status in Status for name in job_detail(in_state(status), CLUSTER, NOON)}
    assert shown == {field.name for field in fields(JobDetail)}
