"""The routes of disks. No controller runs: what is asked for stays asked for."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.api.conftest import Person
from tests.support.reservations import open_test_stores


@pytest.fixture
def somebody(make_person: Callable[..., Person]) -> Person:
    """Somebody who has nothing yet."""
    return make_person(f"user-{uuid.uuid4().hex[:8]}")


@pytest.fixture
def finish(module_database: str) -> Callable[[], None]:
    """Every disk that is being made is there, as a controller would have it."""

    async def finish() -> None:
        async with open_test_stores(module_database) as stores:
            await stores.database.execute(
                "UPDATE disks SET state = 'available', ebs_volume_id = 'vol-1' WHERE state = 'creating'"
            )
            await stores.database.execute("UPDATE disk_operations SET status = 'done'")

    return lambda: asyncio.run(finish())


def create(somebody: Person, name: str, **fields: Any) -> Any:
    return somebody.call("POST", "/v1/disks", {"disk_name": name, **fields})


def test_a_created_disk_appears_at_once(somebody: Person) -> None:
    asked = create(somebody, "work", size_gb=20).json
    assert (asked["disk_name"], asked["action"]) == ("work", "create")
    listed = somebody.call("GET", "/v1/disks").json
    assert (listed["total"], listed["disks"][0]["disk_name"]) == (1, "work")
    shown = somebody.call("GET", "/v1/disks/work").json
    assert (shown["size_gb"], shown["in_use"], shown["is_deleted"]) == (20, False, False)
    assert shown["user_id"] == somebody.username
    operation = somebody.call("GET", f"/v1/disks/work/operations/{asked['operation_id']}").json
    assert (operation["status"], operation["completed"]) == ("requested", False)
    of_any_kind = somebody.call("GET", f"/v1/operations/{asked['operation_id']}").json
    assert (of_any_kind["action"], of_any_kind["status"]) == ("create", "requested")


@pytest.mark.parametrize(
    "body, status, code",
    [
        ({"disk_name": "a b"}, 400, "bad_disk_name"),
        ({"disk_name": "none"}, 400, "bad_disk_name"),
        ({"disk_name": "x" * 51}, 400, "bad_disk_name"),
        ({"disk_name": "ok", "size_gb": 9}, 400, "bad_disk_size"),
        ({"disk_name": "ok", "size_gb": 10001}, 400, "bad_disk_size"),
        ({}, 422, "bad_request_body"),
    ],
)
def test_what_cannot_be_a_disk_is_refused(somebody: Person, body: Any, status: int, code: str) -> None:
    answer = somebody.call("POST", "/v1/disks", body)
    assert (answer.status, answer.json["code"]) == (status, code)


def test_a_name_is_taken_until_its_disk_is_deleted(somebody: Person, finish: Callable[[], None]) -> None:
    create(somebody, "work")
    again = create(somebody, "work")
    assert (again.status, again.json["code"]) == (409, "disk_exists")
    finish()
    deleted = somebody.call("DELETE", "/v1/disks/work")
    assert deleted.json["action"] == "delete"
    assert somebody.call("GET", "/v1/disks").json["total"] == 0
    [old] = somebody.call("GET", "/v1/disks?deleted=true").json["disks"]
    assert old["is_deleted"]
    assert old["delete_date"]
    assert create(somebody, "work").status == 200
    finish()
    taken = somebody.call("POST", "/v1/disks/work/restore")
    assert (taken.status, taken.json["code"]) == (409, "disk_exists")
    back = somebody.call("POST", "/v1/disks/work/restore", {"new_name": "old"})
    assert back.json["disk_name"] == "old"


def test_a_deleted_disk_is_gone_for_everything_but_restore(
    somebody: Person, finish: Callable[[], None]
) -> None:
    create(somebody, "work")
    finish()
    somebody.call("DELETE", "/v1/disks/work")
    for path, body in (
        ("rename", {"new_name": "x"}),
        ("clone", {"new_name": "x"}),
        ("grow", {"size_gb": 200}),
    ):
        assert somebody.call("POST", f"/v1/disks/work/{path}", body).status == 410
    assert somebody.call("DELETE", "/v1/disks/work").status == 410
    assert somebody.call("GET", "/v1/disks/work").json["is_deleted"]


def test_only_a_deleted_disk_can_be_restored(somebody: Person) -> None:
    create(somebody, "work")
    there = somebody.call("POST", "/v1/disks/work/restore")
    assert (there.status, there.json["code"]) == (409, "disk_not_deleted")
    missing = somebody.call("POST", "/v1/disks/other/restore")
    assert (missing.status, missing.json["code"]) == (404, "not_found")


def test_a_disk_that_a_reservation_names_cannot_be_changed(
    somebody: Person, finish: Callable[[], None]
) -> None:
    job = somebody.submit(disk_name="work").json["job_id"]
    assert somebody.get(job)["disk_name"] == "work"
    shown = somebody.call("GET", "/v1/disks/work").json
    assert (shown["in_use"], shown["reservation_id"]) == (True, job)
    for method, path, body in (
        ("DELETE", "/v1/disks/work", None),
        ("POST", "/v1/disks/work/rename", {"new_name": "x"}),
        ("POST", "/v1/disks/work/grow", {"size_gb": 200}),
    ):
        answer = somebody.call(method, path, body)
        assert (answer.status, answer.json["code"]) == (409, "disk_in_use")
        assert job[:8] in answer.json["detail"]


def test_a_second_reservation_of_a_disk_is_refused_with_the_choices(somebody: Person) -> None:
    create(somebody, "free")
    job = somebody.submit(disk_name="work").json["job_id"]
    refused = somebody.submit(disk_name="work")
    assert (refused.status, refused.json["code"]) == (409, "disk_in_use")
    sentence = f'Disk "work" is attached to reservation {job[:8]}.'
    assert refused.json["detail"] == f"{sentence} {refused.json['hint']}"
    for choice in ("--disk NEW_NAME", "--disk none", f"gpu-dev cancel {job[:8]}"):
        assert choice in refused.json["hint"]


def test_without_a_name_the_default_disk_is_taken_and_then_none(somebody: Person) -> None:
    first = somebody.submit(disk_name=None).json
    assert "warning" not in first
    assert somebody.get(first["job_id"])["disk_name"] == "default"
    second = somebody.submit(disk_name=None).json
    assert "not kept" in second["warning"]
    assert "not kept" in second["message"]
    assert "disk_name" not in somebody.get(second["job_id"])


@pytest.mark.parametrize(
    "asked", [{"disk_name": "none"}, {"no_persistent_disk": True}, {"disk_name": "None"}]
)
def test_none_touches_no_disk(somebody: Person, asked: dict[str, Any]) -> None:
    job = somebody.submit(**asked).json
    assert "warning" not in job
    assert "disk_name" not in somebody.get(job["job_id"])
    assert somebody.call("GET", "/v1/disks").json["total"] == 0


def test_a_repeated_submit_gives_the_same_reservation_with_its_disk(somebody: Person) -> None:
    for asked in ({"disk_name": "work"}, {"disk_name": None}, {"disk_name": "none"}):
        key = uuid.uuid4().hex
        first, second = (somebody.submit(key, **asked) for _ in range(2))
        assert first.json["job_id"] == second.json["job_id"]
    other = somebody.submit(key, disk_name="other")
    assert other.json["code"] == "idempotency_key_reused"


def test_a_size_is_for_a_disk_that_is_made(somebody: Person, finish: Callable[[], None]) -> None:
    create(somebody, "work", size_gb=20)
    finish()
    job = somebody.submit(disk_name="work", disk_size_gb=500).json
    assert "has 20 GB already" in job["warning"]
    somebody.submit(disk_name="fresh", disk_size_gb=500)
    assert somebody.call("GET", "/v1/disks/fresh").json["size_gb"] == 500
    assert somebody.submit(disk_name="bad", disk_size_gb=5).json["code"] == "bad_disk_size"


def test_a_disk_without_a_snapshot_has_no_content(somebody: Person) -> None:
    create(somebody, "work")
    content = somebody.call("GET", "/v1/disks/work/content").json
    assert (content["content"], content["disk_name"]) == ("", "work")
    assert "no snapshot yet" in content["message"]
    assert somebody.call("GET", "/v1/disks/work/snapshots").json == {"snapshots": [], "total": 0}
