"""Admins over HTTP: what they see and do, that all of it is written down, and that nobody else can."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gpudev.domain.names import ReservationId
from tests.integration.api.conftest import Person, offer_types
from tests.integration.api.test_access import log_in
from tests.support.api_server import ApiServer, running_api
from tests.support.reservations import open_test_stores

DEADLINE_SECONDS = 30


@pytest.fixture(scope="module")
def api_server(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    asyncio.run(offer_types(module_database))
    settings = {"GPU_DEV_ADMINS": "local:grace, local:root", "GPU_DEV_AUDIT_SEAL_SECONDS": "0.05"}
    with running_api(module_database, Path(tmp_path_factory.mktemp("state")), settings) as server:
        yield server


@pytest.fixture(scope="module")
def grace(make_person: Callable[..., Person]) -> Person:
    return make_person("grace")


def read_audit(admin: Person, query: str = "") -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = admin.call("GET", f"/v1/admin/audit?{query}").json["entries"]
    return entries


def await_sealed(admin: Person) -> dict[str, Any]:
    """Verify until nothing but the verification itself waits for a seal."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        found: dict[str, Any] = admin.call("GET", "/v1/admin/audit/verify").json
        if found["waiting_entries"] <= 1 or time.monotonic() > deadline:
            return found


@pytest.mark.parametrize(
    "method,path",
    [
        ("GET", "/v1/admin/users"),
        ("POST", "/v1/admin/users/ada/disable"),
        ("POST", "/v1/admin/users/ada/enable"),
        ("GET", "/v1/admin/audit"),
        ("GET", "/v1/admin/audit/verify"),
    ],
)
def test_nobody_else_gets_in_and_the_attempt_is_written_down(
    eve: Person, grace: Person, method: str, path: str
) -> None:
    answer = eve.call(method, path)
    assert (answer.status, answer.json["code"]) == (403, "not_allowed")
    (newest, *_) = read_audit(grace, "user=eve&action=admin")
    assert (newest["outcome"], newest["target"]) == ("refused", path)


def test_what_cannot_be_stored_is_refused_all_the_same(eve: Person) -> None:
    assert eve.call("POST", "/v1/admin/users/a%00%1b%ff/disable").status == 403


def test_who_is_an_admin_is_told_so(grace: Person, eve: Person) -> None:
    assert grace.call("GET", "/v1/me").json["is_admin"] is True
    assert eve.call("GET", "/v1/me").json["is_admin"] is False


def test_admins_see_the_jobs_of_all_and_others_only_their_own(
    ada: Person, eve: Person, grace: Person
) -> None:
    of_ada, of_eve = ada.submit().json["job_id"], eve.submit().json["job_id"]

    def listed(person: Person, query: str) -> set[str]:
        return {job["job_id"] for job in person.call("GET", f"/v1/jobs?{query}").json["jobs"]}

    assert {of_ada, of_eve} <= listed(grace, "user=all")
    assert of_ada in listed(grace, "user=ada")
    assert of_eve not in listed(grace, "user=ada")
    assert listed(grace, "") == set()
    assert of_ada in listed(ada, "user=ada")
    for user in ("eve", "all", "nobody"):
        assert ada.call("GET", f"/v1/jobs?user={user}").status == 403
    assert grace.call("GET", "/v1/jobs?user=nobody").status == 404
    assert grace.call("GET", "/v1/jobs?user=a%00b").status == 404
    assert grace.call("GET", f"/v1/jobs/{of_ada[:8]}").json["user_id"] == "ada"
    assert eve.call("GET", f"/v1/jobs/{of_ada}").status == 404
    assert [entry["target"] for entry in read_audit(grace, "action=view_job&limit=1")] == [of_ada]


def test_an_admin_who_cancels_for_another_is_named(ada: Person, grace: Person) -> None:
    job_id = ada.submit().json["job_id"]
    operation = grace.call("POST", f"/v1/jobs/{job_id}/cancel").json["operation_id"]
    assert grace.call("GET", f"/v1/operations/{operation}").json["status"] == "requested"
    assert ada.call("GET", f"/v1/operations/{operation}").json["status"] == "requested"
    (entry,) = read_audit(grace, "action=cancel&limit=1")
    assert (entry["username"], entry["target"], entry["detail"]) == ("grace", job_id, "Of ada.")


@pytest.mark.anyio
async def test_a_cancel_for_another_is_told_from_ones_own(
    ada: Person, grace: Person, module_database: str
) -> None:
    for who, is_by_admin in ((grace, True), (ada, False)):
        job_id = ada.submit().json["job_id"]
        who.call("POST", f"/v1/jobs/{job_id}/cancel")
        async with open_test_stores(module_database) as stores:
            claim = await stores.reservations.claim(ReservationId(job_id), timedelta(minutes=1))
        assert claim is not None
        assert [operation.is_by_admin for operation in claim.operations] == [is_by_admin]


def test_what_users_do_is_written_with_where_they_came_from(ada: Person, grace: Person) -> None:
    job_id = ada.submit().json["job_id"]
    (entry,) = read_audit(grace, "user=ada&action=submit&limit=1")
    assert (entry["target"], entry["address"], entry["outcome"]) == (job_id, "127.0.0.1", "done")


def test_logins_and_keys_are_written_and_no_secret_is(api_server: ApiServer, grace: Person) -> None:
    key = log_in(api_server).json["api_key"]
    assert log_in(api_server, secret=b"guessed").status == 401
    rotated = api_server.call("POST", "/v1/keys/rotate", key=key).json["api_key"]
    api_server.call("DELETE", f"/v1/keys/{key[:8]}", key=rotated)
    entries = read_audit(grace, "limit=6")
    written = [(entry["action"], entry["target"], entry["outcome"]) for entry in reversed(entries)]
    assert written[-5:] == [
        ("login", "local", "done"),
        ("key_issued", key[:8], "done"),
        ("login", "local", "refused"),
        ("key_rotated", rotated[:8], "done"),
        ("key_revoked", key[:8], "done"),
    ]
    text = grace.call("GET", "/v1/admin/audit?limit=500").text
    assert key not in text
    assert rotated not in text


def test_a_disabled_user_is_out_at_once_until_enabled_and_logged_in_again(
    make_person: Callable[..., Person], grace: Person
) -> None:
    mallory = make_person("mallory")
    for _ in range(2):
        answer = grace.call("POST", "/v1/admin/users/mallory/disable")
        assert (answer.status, answer.json["is_active"]) == (200, False)
    assert mallory.call("GET", "/v1/me").status == 401
    listed = {user["username"]: user for user in grace.call("GET", "/v1/admin/users").json["users"]}
    assert listed["mallory"]["is_active"] is False
    assert listed["grace"]["is_active"] is True
    assert grace.call("POST", "/v1/admin/users/mallory/enable").json["is_active"] is True
    assert mallory.call("GET", "/v1/me").status == 401
    done = [entry["action"] for entry in read_audit(grace, "user=grace&limit=4")]
    assert done == ["enable_user", "list_users", "disable_user", "disable_user"]


@pytest.mark.parametrize("name,status", [("nobody", 404), ("a%00b", 404), ("grace", 409)])
def test_some_cannot_be_disabled(grace: Person, name: str, status: int) -> None:
    assert grace.call("POST", f"/v1/admin/users/{name}/disable").status == status


def test_the_log_is_paged(grace: Person, ada: Person) -> None:
    for _ in range(3):
        ada.submit()
    first = grace.call("GET", "/v1/admin/audit?user=ada&limit=2").json
    second = grace.call("GET", f"/v1/admin/audit?user=ada&limit=2&before={first['next_before']}").json
    ids = [entry["entry_id"] for entry in (*first["entries"], *second["entries"])]
    assert ids == sorted(ids, reverse=True)
    assert len(set(ids)) == len(ids) >= 3
    since = first["entries"][0]["at"].replace("+", "%2B")
    assert len(read_audit(grace, f"user=ada&since={since}")) == 1


@pytest.mark.parametrize(
    "query,status",
    [
        ("limit=0", 422),
        ("limit=501", 422),
        ("before=0", 422),
        ("since=yesterday", 422),
        ("since=2026-03-01T12:00:00", 400),
        ("since=9999-12-31T23:59:59-14:00", 400),
        ("until=0001-01-01T00:00:00%2B14:00", 400),
        ("user=a%00b", 400),
    ],
)
def test_a_page_that_makes_no_sense_is_refused(grace: Person, query: str, status: int) -> None:
    assert grace.call("GET", f"/v1/admin/audit?{query}").status == status


@pytest.mark.parametrize("anchor", ["1", "x:y", f"1:{'z' * 64}", f"99999999999:{'0' * 64}"])
def test_an_anchor_of_another_form_is_refused(grace: Person, anchor: str) -> None:
    answer = grace.call("GET", f"/v1/admin/audit/verify?anchor={anchor}")
    assert (answer.status, answer.json["code"]) == (400, "bad_anchor")


def test_the_log_is_sealed_by_itself_and_tampering_is_found(
    grace: Person, ada: Person, module_database: str
) -> None:
    """The last test of the module: the log is broken afterwards."""
    ada.submit()
    found = await_sealed(grace)
    assert found["is_intact"] is True
    assert found["seals"] == found["last_seal"] >= 1
    anchor = f"{found['last_seal']}:{found['last_hash']}"
    assert grace.call("GET", f"/v1/admin/audit/verify?anchor={anchor}").json["is_intact"] is True
    asyncio.run(_tamper(module_database))
    broken = grace.call("GET", "/v1/admin/audit/verify").json
    assert broken["is_intact"] is False
    assert [(finding["kind"], finding["entry_id"]) for finding in broken["findings"]] == [("changed", 1)]


async def _tamper(dsn: str) -> None:
    async with open_test_stores(dsn) as stores, stores.database.transaction() as connection:
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute("UPDATE audit_entries SET username = 'innocent' WHERE entry_id = 1")
