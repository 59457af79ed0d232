"""Quotas: whom they are for, and what they refuse, with the numbers."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gpudev.domain.errors import QuotaExceeded
from gpudev.domain.quota import (
    DEFAULT_QUOTA,
    NO_LIMIT,
    Quota,
    QuotaRule,
    Quotas,
    Use,
    asked_of,
    check_quota,
)
from tests.support.domain_values import HOUR, make_reservation

ASKED = asked_of(make_reservation(gpu_count=4, duration=2 * HOUR))
RULES = Quotas(
    (
        QuotaRule("*", "*", Quota(gpus=1)),
        QuotaRule("*", "h100", Quota(gpus=2)),
        QuotaRule("ada", "*", Quota(gpus=3)),
        QuotaRule("ada", "h100", Quota(gpus=4)),
    )
)


@pytest.mark.parametrize(
    "user, gpu_type, gpus",
    [("bob", "t4", 1), ("bob", "h100", 2), ("ada", "t4", 3), ("ada", "h100", 4)],
)
def test_the_most_exact_rule_counts(user: str, gpu_type: str, gpus: int) -> None:
    assert RULES.find(user, gpu_type).gpus == gpus


def test_without_a_rule_there_is_no_limit() -> None:
    assert Quotas((QuotaRule("ada", "*", Quota(gpus=1)),)).find("bob", "t4") == NO_LIMIT


@pytest.mark.parametrize(
    "quota, use, words",
    [
        (Quota(gpus=2), Use(), "4 quad GPUs are more than your quota of 2 at once"),
        (Quota(waiting=3), Use(waiting=3), "3 of your requests wait for quad GPUs; your quota is 3"),
        (
            Quota(reserved_gpu_hours=10),
            Use(reserved_gpu_hours=3),
            r"8.0 GPU-hours of quad are more than you have left: 3.0 of your 10 are reserved now\.",
        ),
        (Quota(gpu_hours=10), Use(gpu_hours=3), "8.0 GPU-hours of quad are more than you have left: 3.0 of"),
        (Quota(gpu_hours=10, period=timedelta(days=30)), Use(gpu_hours=10), "10 in 30 days"),
    ],
    ids=["GPUs at once", "requests that wait", "reserved hours", "hours", "no hours left"],
)
def test_what_goes_beyond_a_quota_is_refused_with_the_numbers(quota: Quota, use: Use, words: str) -> None:
    with pytest.raises(QuotaExceeded, match=words) as refused:
        check_quota(ASKED, quota, use)
    assert refused.value.code == "quota_exceeded"
    assert refused.value.hint


@pytest.mark.parametrize(
    "quota, use",
    [
        (NO_LIMIT, Use(waiting=1000, gpu_hours=1e6)),
        (Quota(gpus=4), Use(waiting=50)),
        (Quota(waiting=3), Use(waiting=2)),
        (Quota(reserved_gpu_hours=10), Use(reserved_gpu_hours=2, gpu_hours=100)),
        (Quota(gpu_hours=10), Use(gpu_hours=2)),
    ],
)
def test_what_is_within_a_quota_is_not(quota: Quota, use: Use) -> None:
    check_quota(ASKED, quota, use)


def test_who_has_no_rule_has_the_default_and_a_rule_without_limits_takes_it_away() -> None:
    quotas = Quotas((QuotaRule("ada", "*", NO_LIMIT),), default=DEFAULT_QUOTA)
    assert quotas.find("bob", "t4") == DEFAULT_QUOTA
    assert quotas.find("ada", "t4") == NO_LIMIT


@pytest.mark.parametrize(
    "use, hint",
    [(Use(reserved_gpu_hours=2), "Ask for 1.5 hours at most"), (Use(reserved_gpu_hours=7.9), "Cancel one")],
    ids=["something is left", "too little is left"],
)
def test_rejected_hours_say_what_to_do(use: Use, hint: str) -> None:
    with pytest.raises(QuotaExceeded) as refused:
        check_quota(ASKED, Quota(reserved_gpu_hours=8), use)
    assert refused.value.hint.startswith(hint)
