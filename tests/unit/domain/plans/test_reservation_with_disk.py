"""What is done about a reservation with a disk."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gpudev.domain.plans.reservation import plan_reservation
from gpudev.domain.plans.turn import (
    CreateServer,
    DeleteServer,
    ListHome,
    LookAgain,
    Note,
    Record,
)
from gpudev.domain.server import ServerPhase
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import DiskState, Reason, Status
from tests.support.disk_values import make_disk
from tests.support.domain_values import (
    NOW,
    POLICY,
    make_cancel,
    make_reservation,
)
from tests.support.reservation_plans import (
    observe,
    records,
)
from tests.support.words import words_of


class TestDisk:
    """No server before its disk is ready, and never one with an empty home instead."""

    @pytest.mark.parametrize("state", [DiskState.AVAILABLE, DiskState.ATTACHING, DiskState.RELEASING])
    def test_a_server_waits_for_its_disk(self, state: DiskState) -> None:
        plan = plan_reservation(observe(Status.PREPARING, None, disk=make_disk(state)))
        assert [type(action) for action in plan] == [LookAgain]

    def test_a_disk_that_is_ready_becomes_the_home(self) -> None:
        plan = plan_reservation(observe(Status.PREPARING, None, disk=make_disk(DiskState.IN_USE)))
        [spec] = [action.spec for action in plan if isinstance(action, CreateServer)]
        assert spec.home is not None
        assert (spec.home.disk_name, spec.home.volume_id) == ("default", "vol-0")

    def test_a_disk_of_somebody_else_is_not_mounted(self) -> None:
        other = make_disk(DiskState.IN_USE, reservation_id=make_reservation(2).id)
        plan = plan_reservation(observe(Status.PREPARING, None, disk=other))
        assert [type(action) for action in plan] == [LookAgain]

    def test_a_disk_that_fails_fails_its_reservation(self) -> None:
        broken = make_disk(DiskState.ATTACHING, problem=fact("words", words="The volume is gone."))
        [record] = plan_reservation(observe(Status.PREPARING, None, disk=broken))
        assert isinstance(record, Record)
        assert (record.after.state.status, record.after.state.reason) == (Status.FAILED, Reason.DISK_FAILED)
        assert "The volume is gone." in words_of(record.after.state.detail)

    def test_a_disk_may_take_as_long_as_a_start_may(self) -> None:
        """The storage says nothing meanwhile, so that silence is no reason to give up."""
        seen = observe(Status.PREPARING, None, disk=make_disk(DiskState.ATTACHING))
        begun = seen.reservation.state.placed_at or seen.reservation.spec.created_at
        late = replace(seen, now=begun + POLICY.progress_limit)
        assert [type(action) for action in plan_reservation(late)] == [LookAgain]
        ready = replace(late, disk=make_disk(DiskState.IN_USE))
        assert any(isinstance(action, CreateServer) for action in plan_reservation(ready))
        too_late = replace(seen, now=begun + POLICY.start_limit)
        (record,) = records(plan_reservation(too_late))
        assert (record.after.state.status, record.after.state.reason) == (
            Status.FAILED,
            Reason.START_TIMED_OUT,
        )

    def test_a_server_that_came_late_with_its_disk_has_time_to_start(self) -> None:
        fresh = make_reservation(status=Status.PREPARING, told_notices=())
        begun = fresh.state.placed_at or fresh.spec.created_at
        late = begun + 2 * POLICY.progress_limit
        seen = observe(Status.PREPARING, ServerPhase.STARTING, late, reservation=fresh)
        plan = plan_reservation(replace(seen, disk=make_disk(DiskState.IN_USE)))
        [note] = [action for action in plan if isinstance(action, Note)]
        assert note.after.memory.progress_at == late
        assert records(plan) == []

    @pytest.mark.parametrize("why", ["cancel", "expiry"])
    def test_what_is_on_it_is_listed_after_the_end_is_written_and_before_the_server_goes(
        self, why: str
    ) -> None:
        reservation = make_reservation(status=Status.ACTIVE, disk_id=make_disk().id)
        now = NOW if why == "cancel" else NOW + timedelta(days=3)
        asked = (make_cancel(),) if why == "cancel" else ()
        seen = observe(Status.ACTIVE, ServerPhase.READY, now, reservation=reservation, operations=asked)
        plan = plan_reservation(seen)
        assert [type(action) for action in plan] == [Record, ListHome, DeleteServer]

    def test_a_server_that_does_not_answer_is_not_asked(self) -> None:
        reservation = make_reservation(status=Status.ACTIVE, disk_id=make_disk().id)
        seen = observe(
            Status.ACTIVE, ServerPhase.STARTING, reservation=reservation, operations=(make_cancel(),)
        )
        assert [type(action) for action in plan_reservation(seen)] == [Record, DeleteServer]
