"""How much longer a reservation may become, and what is said when it may not."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest

from gpudev.domain.errors import Conflict, Invalid
from gpudev.domain.operations import extend, extension_of, find_allowance
from gpudev.texts.template import format_duration
from gpudev.texts.vocabulary import Status
from tests.support.domain_values import HOUR, MINUTE, NOW, POLICY, make_reservation
from tests.support.parts import change

ACTIVE = make_reservation(status=Status.ACTIVE, launched_at=NOW, expires_at=NOW + 24 * HOUR)


def test_extension_is_counted_from_the_end_and_forgets_the_warnings() -> None:
    warned = change(ACTIVE, warned_minutes=5, extension_error="Too long.")
    assert extend(warned, HOUR / 2, POLICY) == change(
        warned, expires_at=NOW + 24.5 * HOUR, warned_minutes=None, extension_error=""
    )


def test_all_extensions_together_end_at_the_longest_length() -> None:
    longest = extend(ACTIVE, 24 * HOUR, POLICY)
    assert longest.state.expires_at == NOW + 48 * HOUR
    assert find_allowance(longest, POLICY) == timedelta()
    with pytest.raises(Invalid, match="longest length of 48 hours already"):
        extend(longest, MINUTE, POLICY)


@pytest.mark.parametrize("length", [24 * HOUR + MINUTE, timedelta.max], ids=str)
def test_too_long_is_refused_with_the_longest_that_is_left(length: timedelta) -> None:
    with pytest.raises(Invalid, match="by 24 hours at most") as refused:
        extend(ACTIVE, length, POLICY)
    assert refused.value.code == "extension_too_long"
    assert refused.value.hint == f"For example: gpu-dev edit {ACTIVE.id8} --extend 24"


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.ACTIVE}), ids=str)
def test_only_an_active_reservation_can_be_extended(status: Status) -> None:
    with pytest.raises(Conflict) as refused:
        extend(make_reservation(status=status), HOUR, POLICY)
    assert refused.value.code == "not_active"


@pytest.mark.parametrize("hours", [0, -1, -math.inf, math.nan])
def test_what_is_no_extension_is_refused(hours: float) -> None:
    with pytest.raises(Invalid) as refused:
        extension_of(hours)
    assert refused.value.code == "bad_extension"


def test_hours_become_a_length() -> None:
    assert extension_of(1.5) == 1.5 * HOUR
    assert extension_of(math.inf) == timedelta.max


@pytest.mark.parametrize(
    "length, words",
    [
        (26 * HOUR, "26 hours"),
        (1.5 * HOUR, "1 hour 30 minutes"),
        (45 * MINUTE, "45 minutes"),
        (MINUTE, "1 minute"),
        (timedelta(seconds=59), "less than a minute"),
    ],
)
def test_lengths_are_said_in_hours_and_minutes(length: timedelta, words: str) -> None:
    assert format_duration(length) == words
