"""Who counts as idle, and what follows: every signal must agree, and what is not known is busy."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gpudev.domain.idle import IdlePolicy, Signal, Usage, find_idle_since, judge, weigh
from gpudev.domain.plans.active import is_given_up, plan_idleness
from gpudev.domain.plans.turn import LookAgain, Record
from gpudev.texts.vocabulary import EventKind, Status
from tests.support.domain_values import HOUR, MINUTE, NOW, make_reservation
from tests.support.parts import change
from tests.support.words import words_of

POLICY = IdlePolicy(after=HOUR)
QUIET = {Signal.GPU_USE: 0.0, Signal.GPU_MEMORY: 1.0, Signal.SSH: 0.0, Signal.CPU: 0.1}
NO_JUPYTER = frozenset({Signal.JUPYTER})


def look(*, absent: frozenset[Signal] = NO_JUPYTER, **signals: float) -> Usage:
    return Usage(NOW, {**QUIET, **{Signal(name): value for name, value in signals.items()}}, absent)


def test_server_is_idle_when_every_signal_says_so() -> None:
    verdict = judge(look(), POLICY)
    assert verdict.is_idle
    assert words_of(verdict.signals) == "GPU use 0%, GPU memory 1%, 0 SSH connections, 0.10 CPU cores busy"


@pytest.mark.parametrize(
    "signal, value", [("gpu_use", 6), ("gpu_memory", 11), ("ssh", 1), ("jupyter", 1), ("cpu", 0.6)]
)
def test_one_signal_is_enough_to_be_busy_and_is_named(signal: str, value: float) -> None:
    verdict = judge(look(absent=frozenset(), **{"jupyter": 0, signal: value}), POLICY)
    assert not verdict.is_idle
    assert f"{value:g}" in words_of(verdict.signals)


@pytest.mark.parametrize("signal", Signal, ids=str)
def test_signal_that_is_not_known_is_busy_and_one_that_cannot_exist_has_no_say(signal: Signal) -> None:
    known = {name: value for name, value in {**QUIET, Signal.JUPYTER: 0.0}.items() if name is not signal}
    assert not judge(Usage(NOW, known), POLICY).is_idle
    assert judge(Usage(NOW, known, frozenset({signal})), POLICY).is_idle


def test_declared_figures_are_called_simulated() -> None:
    words = words_of(judge(replace(look(), is_simulated=True), POLICY).signals)
    assert "GPU use 0% (simulated)" in words
    assert "0 SSH connections," in words


def test_idleness_lasts_until_the_first_busy_look() -> None:
    idle, busy = judge(look(), POLICY), judge(look(ssh=1), POLICY)
    assert find_idle_since(None, look(), idle) == NOW
    assert find_idle_since(NOW - HOUR, look(), idle) == NOW - HOUR
    assert find_idle_since(NOW - HOUR, look(), busy) is None


IDLE = make_reservation(
    status=Status.ACTIVE,
    usage_at=NOW,
    idle_since=NOW - HOUR,
    signals="GPU use 0%",
    expires_at=NOW + 9 * HOUR,
)


def test_nobody_is_ended_where_it_is_off() -> None:
    for policy in (IdlePolicy(), IdlePolicy(after=HOUR, by_type={IDLE.spec.gpu_type: None})):
        assert plan_idleness(IDLE, NOW, policy) == ()
        assert not is_given_up(change(IDLE, idle_warned_at=NOW - 9 * HOUR), NOW, policy)


def test_type_can_have_a_patience_of_its_own() -> None:
    policy = IdlePolicy(by_type={IDLE.spec.gpu_type: 2 * HOUR})
    assert plan_idleness(IDLE, NOW, policy) == (LookAgain(NOW + HOUR),)


def test_idle_server_is_warned_with_the_signals_and_a_countdown_and_then_given_up() -> None:
    [record] = plan_idleness(IDLE, NOW, POLICY)
    assert isinstance(record, Record)
    assert record.event.kind is EventKind.IDLE_WARNED
    assert "GPU use 0%" in record.event.message
    assert f"{NOW + POLICY.countdown:%H:%M:%S}" in record.event.message
    warned = record.after
    end = NOW + POLICY.countdown
    assert plan_idleness(warned, NOW, POLICY) == (LookAgain(end),)
    assert not is_given_up(change(warned, usage_at=end), end - timedelta(seconds=1), POLICY)
    assert is_given_up(change(warned, usage_at=end), end, POLICY)


@pytest.mark.parametrize(
    "changes, why",
    [
        ({"idle_since": None, "signals": "GPU use 97%"}, "used again: GPU use 97%"),
        ({"idle_since": NOW - MINUTE}, "it was used until"),
        ({"kept_until": NOW + HOUR}, "it is kept until"),
        ({"usage_at": NOW - HOUR}, "how it is used is not known"),
    ],
)
def test_warning_is_taken_back_with_the_reason_and_nobody_is_ended(
    changes: dict[str, object], why: str
) -> None:
    warned = change(IDLE, idle_warned_at=NOW - HOUR, idle_warning="Nobody uses it.", **changes)
    assert not is_given_up(warned, NOW, POLICY)
    [record] = plan_idleness(warned, NOW, POLICY)
    assert isinstance(record, Record)
    assert record.event.kind is EventKind.IDLE_OVER
    assert why in record.event.message
    assert (record.after.memory.idle_warned_at, words_of(record.after.memory.idle_warning)) == (None, "")


def test_kept_server_is_warned_when_the_time_is_over_and_it_is_still_idle() -> None:
    kept = change(IDLE, kept_until=NOW + HOUR)
    assert weigh(kept, NOW, POLICY).warn_at == NOW + HOUR
    assert plan_idleness(kept, NOW, POLICY) == (LookAgain(NOW + HOUR),)
