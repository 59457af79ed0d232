"""What HTTP clients of version 0.3 rely on in our answers. No controller runs.

They send no `X-GPU-Dev-Client`, and show `detail` alone of an error.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.api.conftest import Person
from tests.support.client_0_3 import Client03, Wish, make_body
from tests.support.github import FakeGitHub
from tests.support.reservations import PUBLIC_KEY, open_test_stores

OURS = {"X_GPU_Dev_Client": "1.0"}


@pytest.fixture(autouse=True)
def _keys(github: FakeGitHub) -> None:
    github.keys["ada"] = [PUBLIC_KEY]


@pytest.fixture
def somebody(make_person: Callable[..., Person]) -> Person:
    """Somebody who has nothing yet."""
    return make_person(f"user-{uuid.uuid4().hex[:8]}")


@pytest.fixture
def old(somebody: Person) -> Client03:
    return Client03(somebody.call)


@pytest.fixture
def execute(module_database: str) -> Callable[..., None]:
    """As a controller would have left it."""

    def execute(statement: str, *values: object) -> None:
        async def run() -> None:
            async with open_test_stores(module_database) as stores:
                await stores.database.execute(statement, *values)

        asyncio.run(run())

    return execute


class TestDisks:
    @pytest.fixture
    def operation(self, somebody: Person, execute: Callable[..., None]) -> str:
        asked = somebody.call("POST", "/v1/disks", {"disk_name": "work"}).json
        execute(
            "UPDATE disks SET state = 'available', ebs_volume_id = 'vol-1' FROM api_users AS u"
            " WHERE disks.user_id = u.user_id AND u.username = $1",
            somebody.username,
        )
        return str(asked["operation_id"])

    @pytest.mark.parametrize(
        "stored, told, is_completed",
        [("requested", "requested", False), ("done", "completed", True), ("failed", "failed", True)],
    )
    def test_an_operation_that_is_done_is_completed(
        self,
        somebody: Person,
        operation: str,
        execute: Callable[..., None],
        stored: str,
        told: str,
        *,
        is_completed: bool,
    ) -> None:
        execute(
            "UPDATE disk_operations SET status = $2 WHERE operation_id = $1", uuid.UUID(operation), stored
        )
        answer = somebody.call("GET", f"/v1/disks/work/operations/{operation}").json
        assert (answer["status"], answer["completed"]) == (told, is_completed)

    def test_content_comes_without_a_message(
        self, somebody: Person, operation: str, execute: Callable[..., None]
    ) -> None:
        assert operation
        before = somebody.call("GET", "/v1/disks/work/content").json
        assert before["content"] == ""
        assert "no snapshot yet" in before["message"]
        execute(
            "INSERT INTO snapshots (snapshot_id, disk_id, ebs_volume_id, started_at, size_gb, content)"
            " SELECT 'snap-' || disk_id, disk_id, 'vol-1', now(), 100, '12 notes.txt'"
            " FROM disks JOIN api_users USING (user_id) WHERE username = $1",
            somebody.username,
        )
        answer = somebody.call("GET", "/v1/disks/work/content").json
        assert answer["content"] == "12 notes.txt"
        assert answer["snapshot_date"]
        assert "message" not in answer

    def test_a_disk_is_made_with_the_size_that_was_sent(self, somebody: Person, old: Client03) -> None:
        assert old.submit(Wish(), disk_name="big", disk_size_gb=250).status == 200
        assert somebody.call("GET", "/v1/disks/big").json["size_gb"] == 250


@pytest.mark.parametrize(
    "method, path",
    [
        ("POST", "/jupyter/enable"),
        ("POST", "/jupyter/disable"),
        ("POST", "/users"),
        ("DELETE", "/users/grace"),
    ],
)
def test_what_is_not_there_yet_is_not_taken_for_a_missing_reservation(
    somebody: Person, old: Client03, method: str, path: str
) -> None:
    job = old.submit(Wish()).json["job_id"]
    body = {"github_username": "grace"} if path == "/users" else None
    answer = somebody.call(method, f"/v1/jobs/{job[:8]}{path}", body)
    assert (answer.status, answer.json["code"]) == (400, "not_supported_yet")
    assert job[:8] in answer.json["detail"]
    missing = somebody.call(method, f"/v1/jobs/nosuch{path}", body)
    assert (missing.status, missing.json["code"]) == (404, "not_found")


def test_queued_counts_the_gpus_that_are_waited_for(somebody: Person, old: Client03) -> None:
    before = _read_queued(somebody)
    assert old.submit(Wish(gpu_count=4)).status == 200
    assert old.submit(Wish(gpu_count=2), disk_name="none").status == 200
    assert _read_queued(somebody) == (before[0] + 6, before[1] + 6, before[2] + 6)


def _read_queued(person: Person) -> tuple[int, int, int]:
    """The same in three places."""
    status = person.call("GET", "/v1/cluster/status").json
    availability = person.call("GET", "/v1/gpu/availability").json["availability"]
    return availability["t4"]["queued"], status["by_gpu_type"]["t4"]["queued"], status["queued_gpus"]


class TestSubmit:
    def test_without_a_type_it_is_one_a100(self, somebody: Person) -> None:
        body = make_body(Wish())
        del body["env_vars"]["GPU_TYPE"], body["env_vars"]["GPU_COUNT"]
        for asked in (body, {"duration_hours": 1}):
            answer = somebody.call("POST", "/v1/jobs/submit", asked)
            # This server has none, and says so.
            assert (answer.status, answer.json["code"]) == (400, "unknown_gpu_type")
            assert '"a100"' in answer.json["detail"]

    def test_our_own_form_still_needs_its_type(self, somebody: Person) -> None:
        answer = somebody.call("POST", "/v1/jobs/submit", {"gpu_count": 1, "duration_hours": 1})
        assert (answer.status, answer.json["code"]) == (422, "bad_request_body")

    def test_a_command_is_refused_and_not_dropped(self, old: Client03) -> None:
        answer = old.submit(Wish(), command="python train.py")
        assert (answer.status, answer.json["code"]) == (400, "not_supported_yet")
        assert "command" in answer.json["detail"]
        assert old.submit(Wish(), command="").status == 200

    def test_a_part_of_several_nodes_is_told_that_it_is_alone(self, old: Client03) -> None:
        answer = old.submit(Wish(name="gang - Node 1/2")).json
        assert "Node 1 of 2 is reserved on its own" in answer["warning"]
        assert "--distributed" in answer["message"]
        job = old.poll(answer["job_id"])
        assert job is not None
        assert "Node 1 of 2" in job["warning"]
        assert "warning" not in old.submit(Wish(name="Node 1"), disk_name="none").json


class TestHints:
    """It shows `detail` alone, so what to do is part of it unless the client says that it shows hints."""

    @pytest.mark.parametrize(
        "method, path, body",
        [
            ("GET", "/v1/jobs/nosuch", None),
            ("POST", "/v1/jobs/submit", make_body(Wish(gpu_type="z9"))),
            ("POST", "/v1/jobs/submit", make_body(Wish(env={"A": "\x1b"}))),
        ],
        ids=["not found", "unknown type", "bad text"],
    )
    def test_the_hint_is_part_of_the_sentence(
        self, somebody: Person, method: str, path: str, body: Any
    ) -> None:
        theirs, ours = somebody.call(method, path, body).json, somebody.call(method, path, body, **OURS).json
        assert ours["hint"]
        assert ours["hint"] not in ours["detail"]
        assert theirs["detail"] == f"{ours['detail']} {ours['hint']}"
        assert theirs["hint"] == ours["hint"]

    @pytest.mark.parametrize("path", ["/v1/jobs", "/v1/nosuch"])
    def test_also_without_a_key_and_without_a_route(self, somebody: Person, path: str) -> None:
        answer = somebody.server.call("GET", path)
        assert answer.json["hint"]
        assert answer.json["hint"] in answer.json["detail"]
