"""How a reservation ends, and what is left to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpudev.domain.errors import IllegalMove
from gpudev.domain.plans.reservation import end_with_defect
from gpudev.domain.plans.turn import (
    DeleteServer,
    LookAgain,
    SettleOperations,
)
from gpudev.domain.server import ServerPhase
from gpudev.texts.vocabulary import LIVE, TERMINAL, OperationStatus, Reason, Status
from tests.support.domain_values import (
    NOW,
    POLICY,
    make_cancel,
    make_reservation,
)
from tests.support.reservation_plans import (
    CLEANED,
    MOMENTS,
    deletions,
    only_record,
    plan_for,
    records,
)
from tests.support.words import words_of


class TestCancel:
    @pytest.mark.parametrize("status", sorted(LIVE), ids=str)
    @pytest.mark.parametrize("moment", MOMENTS)
    def test_cancel_ends_any_live_reservation_before_the_clock_does(
        self, status: Status, moment: str
    ) -> None:
        plan = plan_for(status, ServerPhase.READY, MOMENTS[moment], operations=(make_cancel(),))
        record = only_record(plan)
        assert (record.after.state.status, record.after.state.reason) == (
            Status.CANCELLED,
            Reason.CANCELLED_BY_USER,
        )
        assert [outcome.status for outcome in record.outcomes] == [OperationStatus.DONE]
        assert len(deletions(plan)) == 1

    @pytest.mark.parametrize("status", sorted(LIVE), ids=str)
    def test_cancel_by_an_admin_says_so(self, status: Status) -> None:
        by_admin, by_owner = replace(make_cancel(), is_by_admin=True), make_cancel()
        after = only_record(plan_for(status, operations=(by_admin, by_owner))).after
        assert (after.state.status, after.state.reason) == (Status.CANCELLED, Reason.CANCELLED_BY_ADMIN)
        assert words_of(after.state.detail) == "It was cancelled by an admin."
        first = only_record(plan_for(status, operations=(by_owner, by_admin))).after
        assert first.state.reason is Reason.CANCELLED_BY_USER

    @pytest.mark.parametrize("status", sorted(TERMINAL), ids=str)
    def test_cancel_of_an_ended_reservation_is_done_already_and_does_not_delay_its_clean_up(
        self, status: Status
    ) -> None:
        settled, deletion, look = plan_for(status, ServerPhase.READY, operations=(make_cancel(),))
        assert isinstance(settled, SettleOperations)
        assert isinstance(deletion, DeleteServer)
        assert look == LookAgain(NOW + POLICY.recheck)


class TestEnded:
    @pytest.mark.parametrize("status", sorted(TERMINAL), ids=str)
    def test_end_is_clean_only_when_the_server_is_gone(self, status: Status) -> None:
        assert not records(plan_for(status, ServerPhase.STOPPING))
        record = only_record(plan_for(status, None))
        assert record.after.state.cleaned_at == NOW

    def test_nothing_is_left_to_do_for_a_cleaned_reservation(self) -> None:
        assert plan_for(CLEANED) == ()

    def test_server_that_comes_late_to_a_cleaned_reservation_goes(self) -> None:
        plan = plan_for(CLEANED, ServerPhase.STARTING)
        assert len(deletions(plan)) == 1
        assert not records(plan)


class TestDefect:
    @pytest.mark.parametrize("status", sorted(LIVE), ids=str)
    def test_repeated_error_of_ours_fails_a_live_reservation(self, status: Status) -> None:
        record = end_with_defect(make_reservation(status=status), NOW)
        assert (record.after.state.status, record.after.state.reason) == (
            Status.FAILED,
            Reason.INTERNAL_ERROR,
        )

    @pytest.mark.parametrize("status", sorted(TERMINAL), ids=str)
    def test_repeated_error_of_ours_never_overwrites_an_end(self, status: Status) -> None:
        with pytest.raises(IllegalMove):
            end_with_defect(make_reservation(status=status), NOW)
