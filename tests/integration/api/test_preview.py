"""What would become of a request, bookings, and how good the forecasts were, asked of the API."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from gpudev.domain.capacity import NodeRoom
from gpudev.domain.names import NodeName
from gpudev.domain.reservation import Reservation
from tests.integration.api.conftest import Person
from tests.support.active import make_active
from tests.support.reservations import PUBLIC_KEY, open_test_stores

WISH = {"gpu_type": "t4", "gpu_count": 4, "duration_hours": 8, "ssh_public_keys": [PUBLIC_KEY]}


async def _set_rooms(dsn: str, gpu_type: str, rooms: Sequence[NodeRoom]) -> None:
    """What admission would write."""
    async with open_test_stores(dsn) as stores, stores.admissions.lock(gpu_type) as transaction:
        await transaction.set_rooms(rooms)


@pytest.fixture(autouse=True)
def _one_node(ada: Person, module_database: str) -> None:
    asyncio.run(_set_rooms(module_database, "t4", [NodeRoom(NodeName("t4-0"), 4)]))


def _tomorrow(hours: float = 0) -> str:
    day = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(days=1, hours=hours)
    return day.isoformat()


def test_a_request_that_fits_would_start_now_and_nothing_is_reserved(ada: Person) -> None:
    answer = ada.call("POST", "/v1/jobs/preview", WISH)
    assert (answer.status, answer.json) == (200, {"starts_now": True, "nearby": []})
    assert ada.call("GET", "/v1/jobs").json["total"] == 0


def test_a_bad_request_is_refused_as_a_submit_is(ada: Person) -> None:
    answer = ada.call("POST", "/v1/jobs/preview", {**WISH, "gpu_count": 3})
    assert (answer.status, answer.json["code"]) == (400, "bad_gpu_count")


def test_a_booking_is_kept_and_others_fit_around_it(ada: Person) -> None:
    booked = ada.submit(key="once", gpu_count=4, duration_hours=2, start_at=_tomorrow())
    assert booked.status == 200
    assert ada.get(booked.json["job_id"])["start_at"].startswith(_tomorrow()[:13])
    repeated = ada.submit(key="once", gpu_count=4, duration_hours=2, start_at=_tomorrow())
    assert repeated.json["job_id"] == booked.json["job_id"]

    clash = ada.submit(gpu_count=1, duration_hours=2, start_at=_tomorrow(1))
    assert (clash.status, clash.json["code"]) == (409, "no_room_then")
    assert _tomorrow(2)[:13] in clash.json["hint"]

    ahead = ada.call("POST", "/v1/jobs/preview", {**WISH, "duration_hours": 24}).json
    assert not ahead["starts_now"]
    assert ahead["reason"] == "waiting_in_line"
    assert booked.json["job_id"][:8] in ahead["current_detailed_status"]
    nearby = {(one["gpu_type"], one["duration_hours"], one["starts_now"]) for one in ahead["nearby"]}
    assert nearby == {("t4", 12, True)}


@pytest.mark.parametrize(
    "start_at,code",
    [("2020-01-01T00:00:00Z", "booking_in_the_past"), ("2999-01-01T00:00:00Z", "booking_too_far")],
)
def test_a_booking_for_an_impossible_time_is_refused(ada: Person, start_at: str, code: str) -> None:
    answer = ada.submit(start_at=start_at)
    assert (answer.status, answer.json["code"]) == (400, code)


@pytest.mark.parametrize(
    "zone, time",
    [
        ("", "2020-07-01 12:00 UTC"),
        ("Europe/Berlin", "2020-07-01 14:00 CEST"),
        ("America/New_York", "2020-07-01 08:00 EDT"),
        ("Europe/Atlantis", "2020-07-01 12:00 UTC"),
        ("../../etc/passwd", "2020-07-01 12:00 UTC"),
        ("\xfc" * 4000, "2020-07-01 12:00 UTC"),
    ],
    ids=("none", "berlin", "new_york", "unknown", "path", "long"),
)
def test_a_refusal_has_its_times_in_the_zone_of_the_reader(ada: Person, zone: str, time: str) -> None:
    headers = {"X_GPU_Dev_Time_Zone": zone} if zone else {}
    wish = {**WISH, "start_at": "2020-07-01T12:00:00Z"}
    answer = ada.call("POST", "/v1/jobs/preview", wish, **headers)
    assert (answer.status, answer.json["code"]) == (400, "booking_in_the_past")
    assert answer.json["detail"].startswith(f"A booking for {time} is in the past.")


def test_a_time_that_the_zone_of_the_reader_does_not_have_is_told_in_utc(ada: Person) -> None:
    wish = {**WISH, "start_at": "9999-12-31T23:59:59Z"}
    answer = ada.call("POST", "/v1/jobs/preview", wish, X_GPU_Dev_Time_Zone="Asia/Tokyo")
    assert (answer.status, answer.json["code"]) == (400, "booking_too_far")
    assert "9999-12-31 23:59 UTC" in answer.json["detail"]


def test_an_extension_into_promised_time_is_refused_with_the_longest_that_is_left(
    eve: Person, module_database: str
) -> None:
    async def activate() -> Reservation:
        async with open_test_stores(module_database) as stores:
            return await make_active(stores, await stores.users.upsert("eve"))

    assert eve.submit(gpu_count=4, duration_hours=1, start_at=_tomorrow(12)).status == 200
    running = asyncio.run(activate())
    refused = eve.call("POST", f"/v1/jobs/{running.id}/extend", {"extension_hours": 40})
    assert (refused.status, refused.json["code"]) == (409, "promised_to_others")
    assert f"gpu-dev edit {running.id8} --extend " in refused.json["hint"]
    granted = eve.call("POST", f"/v1/jobs/{running.id}/extend", {"extension_hours": 1})
    assert granted.status == 200
    assert "46 hours more" not in granted.json["message"]


def test_accuracy_is_empty_before_anybody_has_started(ada: Person) -> None:
    assert ada.call("GET", "/v1/queue/accuracy").json["accuracy"] == {}
