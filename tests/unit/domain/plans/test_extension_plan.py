"""What becomes of an extension that is asked for."""

from __future__ import annotations

from datetime import datetime

import pytest

from gpudev.domain.plans.turn import (
    LookAgain,
    SettleOperations,
    Tell,
)
from gpudev.domain.server import ServerPhase
from gpudev.texts.sentences import say
from gpudev.texts.vocabulary import EventKind, OperationStatus, Status
from tests.support.domain_values import (
    HOUR,
    MINUTE,
    NOW,
    POLICY,
    make_cancel,
    make_extension,
)
from tests.support.parts import change
from tests.support.reservation_plans import (
    CLEANED,
    MOMENTS,
    SECOND,
    only_record,
    plan_for,
    warned,
)
from tests.support.words import words_of


class TestExtension:
    LATE = NOW + HOUR + POLICY.grace

    @pytest.mark.parametrize("moment", MOMENTS)
    def test_extension_wins_over_the_end_also_in_grace_and_at_its_very_end(self, moment: str) -> None:
        """Whoever writes `expired` has seen every operation that was accepted before."""
        asked = make_extension(HOUR)
        record = only_record(plan_for("active", ServerPhase.READY, MOMENTS[moment], operations=(asked,)))
        assert (record.event.kind, record.after.state.expires_at) == (EventKind.EXTENDED, NOW + 2 * HOUR)
        assert [outcome.status for outcome in record.outcomes] == [OperationStatus.DONE]

    def test_extension_clears_the_warnings_and_their_files(self) -> None:
        before = warned(5, extension_error="Too long.")
        at = NOW + HOUR - MINUTE
        record = only_record(
            plan_for("active", ServerPhase.READY, at, reservation=before, operations=(make_extension(HOUR),))
        )
        assert (record.after.memory.warned_minutes, words_of(record.after.memory.extension_error)) == (
            None,
            "",
        )
        telling, _ = plan_for("active", ServerPhase.READY, at, reservation=record.after)
        assert telling == Tell(before.id, "uid-1", ())

    def test_extension_that_is_to_wait_holds_the_end_off(self) -> None:
        """Asked for in the last moment by a client that wants to see the old end first."""
        asked = make_extension(HOUR, not_before=self.LATE + 2 * SECOND)
        assert plan_for("active", ServerPhase.READY, self.LATE, operations=(asked,)) == (
            LookAgain(self.LATE + 2 * SECOND),
        )
        then = self.LATE + 2 * SECOND
        record = only_record(plan_for("active", ServerPhase.READY, then, operations=(asked,)))
        assert record.after.state.expires_at == NOW + 2 * HOUR

    def test_extensions_are_carried_out_one_by_one(self) -> None:
        asked = (make_extension(HOUR, number=1), make_extension(HOUR, number=2))
        record = only_record(plan_for("active", ServerPhase.READY, operations=asked))
        assert [outcome.operation_id for outcome in record.outcomes] == ["extension-1"]

    def test_too_long_extension_fails_with_what_is_left_and_changes_no_end(self) -> None:
        asked = make_extension(48 * HOUR)
        record = only_record(plan_for("active", ServerPhase.READY, operations=(asked,)))
        [outcome] = record.outcomes
        assert (outcome.status, record.event.kind) == (OperationStatus.FAILED, EventKind.EXTENSION_REFUSED)
        assert "47 hours" in say(outcome.error)
        assert record.after == change(record.before, extension_error=outcome.error)

    @pytest.mark.parametrize("not_before", [None, NOW + HOUR], ids=["at once", "later"])
    def test_extension_of_what_has_ended_fails_and_is_settled(self, not_before: datetime | None) -> None:
        asked = make_extension(HOUR, not_before=not_before)
        settled = plan_for(CLEANED, operations=(asked,))[0]
        assert isinstance(settled, SettleOperations)
        assert [outcome.status for outcome in settled.outcomes] == [OperationStatus.FAILED]

    def test_cancel_wins_over_an_extension(self) -> None:
        asked = (make_extension(HOUR), make_cancel())
        record = only_record(plan_for("active", ServerPhase.READY, operations=asked))
        assert record.after.state.status is Status.CANCELLED
        assert [outcome.status for outcome in record.outcomes] == ["failed", "done"]
