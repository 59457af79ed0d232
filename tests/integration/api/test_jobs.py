"""Jobs over HTTP: what goes in, what comes out, and what is said when it cannot be done."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.plans.turn import Record
from gpudev.domain.reservation import Event, place
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import EventKind
from tests.integration.api.conftest import Person
from tests.support.api_server import ApiServer
from tests.support.reservations import PUBLIC_KEY, open_test_stores


async def _place(dsn: str, job_id: str) -> None:
    """What a controller would do, so that there is an event to hear of."""
    async with open_test_stores(dsn) as stores:
        before = await stores.reservations.get(ReservationId(job_id))
        now = datetime.now(UTC)
        after = place(before, (NodeName("t4-0"),), now)
        async with stores.admissions.lock("t4") as transaction:
            assert await transaction.record(
                Record(before, after, Event(EventKind.PLACED, fact("words", words="Placed."), now))
            )


def read_event(stream: Any) -> dict[str, Any]:
    """The next Server-Sent Event, with its id."""
    found: dict[str, Any] = {}
    while line := stream.readline().decode().rstrip("\n"):
        name, _, value = line.partition(": ")
        found[name] = json.loads(value) if name == "data" else value
    return found


def test_a_submit_is_answered_and_can_be_read_back(ada: Person) -> None:
    answer = ada.submit(name="first", env_vars={"A": "1"}, client_version="0.4.0", duration_hours=0.5)
    assert answer.status == 200
    assert answer.json["job_id"] == answer.json["reservation_id"]
    job = ada.call("GET", f"/v1/jobs/{answer.json['job_id']}").json
    assert {name: job[name] for name in ("user_id", "name", "status", "gpu_type", "gpu_count")} == {
        "user_id": "ada",
        "name": "first",
        "status": "pending",
        "gpu_type": "t4",
        "gpu_count": 1,
    }
    assert (job["duration_hours"], job["jupyter_enabled"], job["secondary_users"]) == (0.5, False, [])
    assert job["created_at"].endswith("Z")
    assert job["simulated"] is True


def test_what_is_not_known_is_left_out_and_never_null(ada: Person) -> None:
    job = ada.call("GET", f"/v1/jobs/{ada.submit().json['job_id']}").json
    assert None not in job.values()
    assert not {"expires_at", "ssh_command", "queue_position", "node_ip"} & set(job)


@pytest.mark.parametrize(
    "changes,code",
    [
        ({"gpu_type": "z9"}, "unknown_gpu_type"),
        ({"gpu_type": "h100"}, "unknown_gpu_type"),
        ({"gpu_count": 3}, "bad_gpu_count"),
        ({"gpu_count": 0}, "bad_gpu_count"),
        ({"gpu_count": 8}, "too_many_gpus"),
        ({"gpu_count": -1}, "bad_gpu_count"),
        ({"duration_hours": 0}, "bad_duration"),
        ({"duration_hours": -3}, "bad_duration"),
        ({"duration_hours": 24.01}, "bad_duration"),
        ({"duration_hours": 1e300}, "bad_duration"),
        ({"name": "UPPER"}, "bad_name"),
        ({"name": "deadbeef"}, "bad_name"),
        ({"env_vars": {"NVIDIA_VISIBLE_DEVICES": "all"}}, "reserved_env_var"),
        ({"env_vars": {"not a name": "x"}}, "bad_env_var"),
        ({"env_vars": {"A": "nul\0byte"}}, "bad_env_var"),
        ({"ssh_public_keys": []}, "no_ssh_key"),
        ({"ssh_public_keys": ["not a key"]}, "bad_ssh_key"),
        ({"ssh_public_keys": ["ssh-ed25519 AAAA\nssh-ed25519 BBBB"]}, "bad_ssh_key"),
    ],
    ids=str,
)
def test_a_request_that_cannot_be_granted_says_why(ada: Person, changes: dict[str, Any], code: str) -> None:
    answer = ada.submit(**changes)
    assert (answer.status, answer.json["code"]) == (400, code), answer.text
    assert answer.json["detail"]
    assert answer.json["hint"] or code == "bad_ssh_key"


@pytest.mark.parametrize(
    "changes", [{"gpu_count": "many"}, {"duration_hours": None}, {"env_vars": [1]}], ids=str
)
def test_a_body_of_another_shape_is_422_with_a_list(ada: Person, changes: dict[str, Any]) -> None:
    answer = ada.submit(**changes)
    assert answer.status == 422
    assert isinstance(answer.json["detail"], list)


def test_a_taken_name_is_409(ada: Person) -> None:
    assert ada.submit(name="taken-name").status == 200
    answer = ada.submit(name="taken-name")
    assert (answer.status, answer.json["code"]) == (409, "name_taken")


def test_the_same_idempotency_key_is_the_same_job(ada: Person, eve: Person) -> None:
    body = {"gpu_type": "t4", "gpu_count": 1, "duration_hours": 1, "ssh_public_keys": [PUBLIC_KEY]}
    first = ada.call("POST", "/v1/jobs/submit", body, Idempotency_Key="k1")
    again = ada.call("POST", "/v1/jobs/submit", body, Idempotency_Key="k1")
    other = ada.call("POST", "/v1/jobs/submit", {**body, "gpu_count": 2}, Idempotency_Key="k1")
    of_eve = eve.call("POST", "/v1/jobs/submit", body, Idempotency_Key="k1")
    assert again.json["job_id"] == first.json["job_id"]
    assert (other.status, other.json["code"]) == (409, "idempotency_key_reused")
    assert of_eve.json["job_id"] != first.json["job_id"]


def test_a_listing_is_paged_and_filtered(eve: Person) -> None:
    made = [eve.submit().json["job_id"] for _ in range(3)]
    page = eve.call("GET", "/v1/jobs?limit=2&offset=0&status=pending,queued&gpu_type=T4").json
    assert [job["job_id"] for job in page["jobs"]] == [made[2], made[1]]
    assert (page["limit"], page["offset"]) == (2, 0)
    assert page["total"] >= 3
    assert eve.call("GET", "/v1/jobs?status=active").json["jobs"] == []


@pytest.mark.parametrize("query", ["limit=0", "limit=501", "offset=-1", "limit=x"])
def test_a_page_out_of_range_is_422(ada: Person, query: str) -> None:
    assert ada.call("GET", f"/v1/jobs?{query}").status == 422


def test_an_unknown_status_names_the_known_ones(ada: Person) -> None:
    answer = ada.call("GET", "/v1/jobs?status=sleeping")
    assert answer.status == 400
    assert "preparing" in answer.json["hint"]


@pytest.mark.parametrize("text", ["abc", "00000000", "%2e%2e", "a%00b", "x" * 3000])
def test_what_is_not_there_is_404(ada: Person, text: str) -> None:
    answer = ada.call("GET", f"/v1/jobs/{text}")
    assert answer.status == 404
    assert "not found" in answer.json["detail"]


def test_an_ambiguous_prefix_lists_what_it_fits(ada: Person) -> None:
    """A name of a live job wins over a prefix; two prefixes are a conflict."""
    ids = [ada.submit().json["job_id"] for _ in range(2)]
    assert ada.call("GET", f"/v1/jobs/{ids[0][:6]}").json["job_id"] == ids[0]


@pytest.mark.parametrize("operation", ["nonsense", "00000000-0000-4000-8000-000000000000"])
def test_an_unknown_operation_is_404(ada: Person, operation: str) -> None:
    assert ada.call("GET", f"/v1/operations/{operation}").status == 404


def test_events_come_as_they_happen_and_resume_where_one_left_off(
    ada: Person, api_server: ApiServer, module_database: str
) -> None:
    job_id = ada.submit().json["job_id"]
    path = f"/v1/jobs/{job_id}/events"
    with api_server.stream(path, ada.key) as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        first = read_event(stream)
        assert (first["id"], first["event"], first["data"]["kind"]) == ("1", "submitted", "submitted")
        assert first["data"]["key"] == "reservation_requested"
        assert (first["data"]["data"]["gpu_type"], first["data"]["data"]["gpu_count"]) == ("t4", 1)
        asyncio.run(_place(module_database, job_id))
        second = read_event(stream)
        assert (second["id"], second["data"]["status"]) == ("2", "preparing")
    with api_server.stream(path, ada.key, Last_Event_ID="1") as stream:
        assert read_event(stream)["id"] == "2"


def test_times_are_told_in_the_zone_of_the_reader(ada: Person, module_database: str) -> None:
    job_id = ada.submit().json["job_id"]
    start = datetime(2030, 7, 1, 12, tzinfo=UTC)

    async def tell_start() -> None:
        async with open_test_stores(module_database) as stores:
            change = "UPDATE reservation_records SET detail = $2 WHERE reservation_id = $1"
            await stores.database.execute(change, job_id, fact("starts_at", start=start))

    asyncio.run(tell_start())
    told = [
        ada.call("GET", f"/v1/jobs/{job_id}", X_GPU_Dev_Time_Zone=zone).json["current_detailed_status"]
        for zone in ("Asia/Kolkata", "Nowhere/Land")
    ]
    assert told == ["It starts at 2030-07-01 17:30 IST.", "It starts at 2030-07-01 12:00 UTC."]


@pytest.mark.parametrize(
    "sent, zone",
    [
        ({"time_zone": "Asia/Kolkata"}, "Asia/Kolkata"),
        ({"time_zone": "Asia/Kolkata", "header": "Europe/Berlin"}, "Asia/Kolkata"),
        ({"header": "Europe/Berlin"}, "Europe/Berlin"),
        ({"header": "Nowhere/Land"}, ""),
        ({}, ""),
    ],
)
def test_a_reservation_keeps_the_zone_of_who_asked(
    ada: Person, module_database: str, sent: dict[str, str], zone: str
) -> None:
    headers = {"X_GPU_Dev_Time_Zone": sent["header"]} if "header" in sent else {}
    asked = {"gpu_type": "t4", "gpu_count": 1, "duration_hours": 1, "ssh_public_keys": [PUBLIC_KEY]}
    named = {"time_zone": sent["time_zone"]} if "time_zone" in sent else {}
    body = {**asked, **named, "disk_name": "none"}
    job_id = ada.call("POST", "/v1/jobs/submit", body, **headers).json["job_id"]

    async def read_zone() -> str:
        async with open_test_stores(module_database) as stores:
            return (await stores.reservations.get(ReservationId(job_id))).settings.time_zone

    assert asyncio.run(read_zone()) == zone


def test_a_zone_that_is_not_known_is_refused(ada: Person) -> None:
    answer = ada.submit(time_zone="Nowhere/Land")
    assert (answer.status, answer.json["code"]) == (400, "bad_time_zone")


def test_the_history_ends_where_the_present_begins_if_one_does_not_follow(
    ada: Person, module_database: str
) -> None:
    job_id = ada.submit().json["job_id"]
    asyncio.run(_place(module_database, job_id))
    for last, numbers in [("0", ["1", "2"]), ("1", ["2"])]:
        answer = ada.call("GET", f"/v1/jobs/{job_id}/events?follow=false", Last_Event_ID=last)
        assert answer.headers["content-type"].startswith("text/event-stream")
        told = answer.text.splitlines()
        assert [line.removeprefix("id: ") for line in told if line.startswith("id: ")] == numbers


@pytest.mark.parametrize("last", ["99999999999", "-1", "x", "1.5", "0x1"])
def test_an_impossible_last_event_starts_from_the_beginning(
    ada: Person, api_server: ApiServer, last: str
) -> None:
    path = f"/v1/jobs/{ada.submit().json['job_id']}/events"
    with api_server.stream(path, ada.key, Last_Event_ID=last) as stream:
        assert read_event(stream)["id"] == "1"


def test_the_service_tells_what_it_is_without_a_key(api_server: ApiServer) -> None:
    assert api_server.call("GET", "/").json["service"] == "gpu-dev"
    assert api_server.call("GET", "/health").json["status"] == "healthy"
    assert api_server.call("GET", "/ready").status == 200
    assert "/v1/jobs/submit" in api_server.call("GET", "/openapi.json").json["paths"]


@pytest.mark.parametrize(
    "method,path,status", [("GET", "/nowhere", 404), ("DELETE", "/v1/jobs", 405), ("GET", "/v1/jobs/", 404)]
)
def test_every_error_is_json(ada: Person, method: str, path: str, status: int) -> None:
    answer = ada.call(method, path)
    assert answer.status in {status, 307}
    if answer.status == status:
        assert {"detail", "code", "hint"} <= set(answer.json)
