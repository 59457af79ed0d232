"""Asking for more time: what is accepted, what is refused, and what older clients need."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from gpudev.domain.operations import Operation
from gpudev.domain.reservation import Reservation
from gpudev.texts.vocabulary import OperationKind
from tests.integration.api.conftest import Person
from tests.support.active import make_active
from tests.support.api_server import Answer
from tests.support.reservations import open_test_stores

OUR_CLIENT = {"X_GPU_Dev_Client": "1.0"}
HOUR = timedelta(hours=1)
NAMES = (f"user-{number}" for number in itertools.count())


@pytest.fixture
def person(make_person: Callable[..., Person]) -> Person:
    return make_person(next(NAMES))


def activate(dsn: str, person: Person, **changes: Any) -> Reservation:
    async def run() -> Reservation:
        async with open_test_stores(dsn) as stores:
            return await make_active(stores, await stores.users.upsert(person.username), **changes)

    return asyncio.run(run())


def operations_of(dsn: str, reservation: Reservation) -> tuple[Operation, ...]:
    async def run() -> tuple[Operation, ...]:
        async with open_test_stores(dsn) as stores:
            claim = await stores.reservations.claim(reservation.id, HOUR)
            assert claim is not None
            return claim.operations

    return asyncio.run(run())


def extend(person: Person, reservation: Reservation, hours: float, **headers: str) -> Answer:
    path = f"/v1/jobs/{reservation.id}/extend"
    return person.call("POST", path, {"extension_hours": hours}, **{**OUR_CLIENT, **headers})


def test_an_extension_is_recorded_and_the_allowance_that_is_left_is_told(
    person: Person, module_database: str
) -> None:
    active = activate(module_database, person)
    answer = extend(person, active, 1.5)
    assert (answer.status, answer.json["action"], answer.json["status"]) == (200, "extend", "requested")
    assert "45 hours 30 minutes more" in answer.json["message"]
    operation = person.call("GET", f"/v1/operations/{answer.json['operation_id']}").json
    assert (operation["action"], operation["status"]) == ("extend", "requested")
    [asked] = operations_of(module_database, active)
    assert (asked.kind, asked.terms.length) == (OperationKind.EXTEND, 1.5 * HOUR)
    assert asked.terms.not_before is None


def test_a_client_without_our_header_sees_the_old_end_once_more(person: Person, module_database: str) -> None:
    active = activate(module_database, person)
    answer = person.call("POST", f"/v1/jobs/{active.id8}/extend", {"extension_hours": 1})
    assert answer.status == 200
    [asked] = operations_of(module_database, active)
    assert asked.terms.not_before == asked.requested_at + timedelta(seconds=3)


def test_the_same_key_is_one_extension_even_when_no_more_is_left(
    person: Person, module_database: str
) -> None:
    active = activate(module_database, person)
    answers = [extend(person, active, 47, Idempotency_Key="once") for _ in range(2)]
    assert len({answer.json["operation_id"] for answer in answers}) == 1
    assert len(operations_of(module_database, active)) == 1
    assert extend(person, active, 47, Idempotency_Key="twice").json["operation_id"] not in answers


def test_too_long_is_refused_at_once_with_the_longest_that_is_left(
    person: Person, module_database: str
) -> None:
    active = activate(module_database, person)
    refused = extend(person, active, 47.5)
    assert (refused.status, refused.json["code"]) == (400, "extension_too_long")
    assert "by 47 hours at most" in refused.json["detail"]
    assert operations_of(module_database, active) == ()


@pytest.mark.parametrize("hours", [0, -1, 1e300])
def test_what_is_no_extension_is_refused(person: Person, module_database: str, hours: float) -> None:
    assert extend(person, activate(module_database, person), hours).status == 400


def test_only_what_is_active_can_be_extended(person: Person) -> None:
    job = person.submit().json["job_id"]
    refused = person.call("POST", f"/v1/jobs/{job}/extend", {"extension_hours": 1})
    assert (refused.status, refused.json["code"]) == (409, "not_active")


def test_the_end_that_is_near_and_the_refused_extension_are_shown(
    person: Person, module_database: str
) -> None:
    changes = {"warned_minutes": 15, "extension_error": "Too long.", "oom_count": 1}
    active = activate(module_database, person, **changes)
    shown = person.get(active.id)
    assert "ends in 15 minutes" in shown["warning"]
    assert (shown["extension_error"], shown["oom_count"]) == ("Too long.", 1)
