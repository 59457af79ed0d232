"""Views make what the wire describes."""

from __future__ import annotations

from dataclasses import MISSING, fields
from datetime import timedelta
from typing import Any, cast

import pytest

from gpudev.api.views import job_detail
from gpudev.app.application import Application
from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.domain.disk import VolumeId
from gpudev.domain.lifecycle import Status
from gpudev.domain.names import NodeName, UserId
from gpudev.domain.reservation import Reason, Reservation
from gpudev.domain.server import SshAddress
from gpudev.ports.store import User
from gpudev.wire.jobs import JobDetail
from tests.support.reservations import NOON, make_reservation


class FewFacts:
    """As much of an application as a view looks at."""

    catalogue = DEFAULT_CATALOGUE
    simulated_types = frozenset({"t4"})


LATER = NOON + timedelta(hours=1)
STATES: dict[Status, dict[str, Any]] = {
    Status.PENDING: {},
    Status.QUEUED: {"reason": Reason.NO_NODES, "queue_position": 3, "estimated_start_at": LATER},
    Status.PREPARING: {"node": NodeName("t4-0")},
    Status.ACTIVE: {
        "node": NodeName("t4-0"),
        "address": SshAddress("10.0.0.1", 30000),
        "host_keys": ("ssh-ed25519 AAAA",),
        "launched_at": NOON,
        "expires_at": LATER,
        "disk_name": "work",
        "volume_id": VolumeId("vol-1"),
    },
    Status.EXPIRED: {"reason": Reason.TIME_IS_UP, "ended_at": LATER},
    Status.CANCELLED: {"reason": Reason.CANCELLED_BY_USER, "ended_at": LATER},
    Status.FAILED: {
        "reason": Reason.START_FAILED,
        "ended_at": LATER,
        "client_version": "1.0",
        "github_user": "ada",
        "warning": "Look out.",
    },
}


def in_state(status: Status) -> Reservation:
    user = User(UserId(1), "ada")
    return make_reservation(user, status=status, last_updated=NOON, **STATES[status])


@pytest.mark.parametrize("status", Status, ids=str)
def test_a_job_has_what_the_wire_describes_and_nothing_else(status: Status) -> None:
    shown = job_detail(in_state(status), cast("Application", FewFacts), NOON)
    known = {field.name for field in fields(JobDetail)}
    always = {
        field.name
        for field in fields(JobDetail)
        if field.default is not None or field.default_factory is not MISSING
    }
    assert always <= set(shown) <= known
    assert None not in shown.values()


def test_all_that_the_wire_describes_is_shown_in_some_state() -> None:
    shown = {
        name
        for status in Status
        for name in job_detail(in_state(status), cast("Application", FewFacts), NOON)
    }
    assert shown == {field.name for field in fields(JobDetail)}
