"""Asking for a dev server over HTTP: every field, whose keys are let in, and what a repeat means."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gpudev.domain.names import ReservationId
from gpudev.wire.jobs import SubmitRequest
from tests.integration.api.conftest import Person
from tests.support.github import FakeGitHub
from tests.support.reservations import PUBLIC_KEY, open_test_stores

OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHwpPRlAXmC0Y9QJ0c1W3mVqTzj0E2D8xw1k7v5bWn0q"


@pytest.fixture(autouse=True)
def _github_answers_again(github: FakeGitHub) -> Iterator[None]:
    yield
    github.status = 200


def read_keys(dsn: str, job_id: str) -> tuple[str, ...]:
    """The keys that the dev server will let in; they are told to nobody."""

    async def read() -> tuple[str, ...]:
        async with open_test_stores(dsn) as stores:
            return (await stores.reservations.get(ReservationId(job_id))).settings.ssh_public_keys

    return asyncio.run(read())


def make_older(dsn: str, table: str, column: str, by: timedelta) -> None:
    async def change() -> None:
        async with open_test_stores(dsn) as stores:
            await stores.database.execute(f"UPDATE {table} SET {column} = {column} - $1::interval", by)  # noqa: S608 - names of this test

    asyncio.run(change())


NOT_YET: dict[str, Any] = {
    "image": "me/mine:1",
    "dockerfile": "H4sI",
    "preserve_entrypoint": True,
    "jupyter_enabled": True,
    "recreate_env": True,
    "command": "python train.py",
}


@pytest.mark.parametrize("name", NOT_YET)
def test_what_has_nothing_behind_it_is_refused_by_name(ada: Person, name: str) -> None:
    answer = ada.submit(**{name: NOT_YET[name]})
    assert (answer.status, answer.json["code"]) == (400, "not_supported_yet")
    assert name in answer.json["detail"]
    assert answer.json["hint"]


def test_all_that_is_refused_is_named_at_once(ada: Person) -> None:
    answer = ada.submit(image="x", command="y").json
    assert answer["detail"] == "Not supported yet: image, command. Leave them out."


def test_fields_that_ask_for_nothing_are_taken(ada: Person) -> None:
    nothing = dict.fromkeys(("name", "image", "dockerfile", "disk_size_gb", "command", "start_at"))
    off = dict.fromkeys(("preserve_entrypoint", "jupyter_enabled", "recreate_env", "distributed"), False)
    answer = ada.submit(**nothing, **off, node_labels={}, disk_name="none", no_persistent_disk=True)
    assert answer.status == 200, answer.text


def test_every_field_is_either_taken_or_refused() -> None:
    taken = {"gpu_type", "gpu_count", "duration_hours", "name", "env_vars", "no_persistent_disk"}
    taken |= {"ssh_public_keys", "github_user", "client_version", "distributed", "start_at"}
    taken |= {"disk_name", "disk_size_gb", "node_labels", "time_zone"}
    assert {*NOT_YET, *taken} == set(SubmitRequest.__dataclass_fields__)


@pytest.mark.parametrize(
    "body,field",
    [
        ({"gpu_count": 1, "duration_hours": 1}, "gpu_type"),
        ({"gpu_type": "t4", "gpu_count": "many", "duration_hours": 1}, "gpu_count"),
        (
            {"gpu_type": "t4", "gpu_count": 1, "duration_hours": 1, "jupyter_enabled": "perhaps"},
            "jupyter_enabled",
        ),
        ({"gpu_type": "t4", "gpu_count": 1, "duration_hours": 1, "start_at": "soon"}, "start_at"),
        ({"env_vars": {"GPU_TYPE": "t4", "GPU_COUNT": "1"}}, "duration_hours"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_body_that_does_not_fit_says_where(ada: Person, body: dict[str, Any], field: str) -> None:
    answer = ada.call("POST", "/v1/jobs/submit", body)
    assert answer.status == 422
    assert [problem["loc"] for problem in answer.json["detail"]] == [["body", field]]


@pytest.mark.parametrize("body", [[], "text", 1, None, {"env_vars": []}], ids=str)
def test_a_body_that_is_no_request_at_all_is_422(ada: Person, body: Any) -> None:
    answer = ada.call("POST", "/v1/jobs/submit", body)
    assert answer.status == 422
    assert isinstance(answer.json["detail"], list)


@pytest.mark.parametrize(
    "changes,code",
    [
        ({"env_vars": {"A": "\ud800"}}, "bad_env_var"),
        ({"client_version": "1\0"}, "bad_client_version"),
        ({"client_version": "x" * 65}, "bad_client_version"),
        ({"github_user": "../etc"}, "bad_github_user"),
        ({"github_user": "a" * 100}, "bad_github_user"),
        ({"ssh_public_keys": [f"{PUBLIC_KEY} \ud800"]}, "bad_ssh_key"),
    ],
    ids=ascii,
)
def test_what_cannot_be_stored_is_refused_and_breaks_nothing(
    ada: Person, changes: dict[str, Any], code: str
) -> None:
    answer = ada.submit(**changes)
    assert (answer.status, answer.json["code"]) == (400, code), answer.text


def test_the_version_of_the_client_comes_from_the_body_or_the_header(ada: Person) -> None:
    body = {"gpu_type": "t4", "gpu_count": 1, "duration_hours": 1, "ssh_public_keys": [PUBLIC_KEY]}
    by_header = ada.call("POST", "/v1/jobs/submit", body, X_GPU_Dev_Client="0.4.1").json["job_id"]
    said = {**body, "client_version": "0.4.2"}
    by_body = ada.call("POST", "/v1/jobs/submit", said, X_GPU_Dev_Client="0.4.1").json["job_id"]
    assert [ada.get(job)["cli_version"] for job in (by_header, by_body)] == ["0.4.1", "0.4.2"]
    assert "cli_version" not in ada.get(ada.submit().json["job_id"])


class TestKeysOfAGitHubUser:
    def test_they_are_let_in_besides_those_that_were_sent(
        self, ada: Person, github: FakeGitHub, module_database: str
    ) -> None:
        github.keys["ada-l"] = [OTHER_KEY, PUBLIC_KEY.rpartition(" ")[0]]
        job = ada.submit(github_user="Ada-L").json["job_id"]
        assert read_keys(module_database, job) == (PUBLIC_KEY, OTHER_KEY)
        assert ada.get(job)["github_user"] == "ada-l"

    def test_they_are_enough(self, ada: Person, github: FakeGitHub, module_database: str) -> None:
        github.keys["alone"] = [OTHER_KEY]
        answer = ada.submit(github_user="alone", ssh_public_keys=[])
        assert read_keys(module_database, answer.json["job_id"]) == (OTHER_KEY,)
        assert "warning" not in answer.json

    def test_they_are_read_once_for_many_requests(self, ada: Person, github: FakeGitHub) -> None:
        github.keys["busy"] = [OTHER_KEY]
        assert {ada.submit(github_user="busy").status for _ in range(3)} == {200}
        assert github.asked.count("/busy.keys") == 1

    def test_the_last_good_ones_are_used_while_github_does_not_answer(
        self, ada: Person, github: FakeGitHub, module_database: str
    ) -> None:
        github.keys["steady"] = [OTHER_KEY]
        ada.submit(github_user="steady", ssh_public_keys=[])
        make_older(module_database, "github_keys", "fetched_at", timedelta(days=3))
        github.status = 500
        answer = ada.submit(github_user="steady", ssh_public_keys=[])
        assert answer.status == 200
        assert read_keys(module_database, answer.json["job_id"]) == (OTHER_KEY,)

    def test_a_key_that_was_taken_back_is_not_let_in_for_long(
        self, ada: Person, github: FakeGitHub, module_database: str
    ) -> None:
        github.keys["careful"] = [OTHER_KEY, PUBLIC_KEY]
        ada.submit(github_user="careful", ssh_public_keys=[])
        github.keys["careful"] = [PUBLIC_KEY]
        make_older(module_database, "github_keys", "fetched_at", timedelta(minutes=2))
        job = ada.submit(github_user="careful", ssh_public_keys=[]).json["job_id"]
        assert read_keys(module_database, job) == (PUBLIC_KEY,)

    def test_without_any_key_nobody_could_log_in(self, ada: Person, github: FakeGitHub) -> None:
        github.keys["keyless"] = []
        for user in ("keyless", "nobody", ""):
            answer = ada.submit(github_user=user, ssh_public_keys=[])
            assert (answer.status, answer.json["code"]) == (400, "no_ssh_key")
            assert user in answer.json["detail"]
        github.keys["keyless"] = [OTHER_KEY]
        assert ada.submit(github_user="keyless", ssh_public_keys=[]).status == 200, "asked again at once"

    def test_without_an_answer_and_without_a_memory_it_can_be_tried_again(
        self, ada: Person, github: FakeGitHub
    ) -> None:
        github.status = 500
        answer = ada.submit(github_user="stranger", ssh_public_keys=[])
        assert (answer.status, answer.json["code"]) == (503, "keys_unavailable")
        assert answer.headers["retry-after"]

    @pytest.mark.parametrize("status", [404, 500])
    def test_keys_that_were_sent_do_without_github_and_the_user_is_told(
        self, ada: Person, github: FakeGitHub, status: int
    ) -> None:
        github.status = status
        answer = ada.submit(github_user=f"absent-{status}")
        assert answer.status == 200
        assert "that were sent are let in" in answer.json["warning"]
        assert answer.json["warning"] in answer.json["message"]
        assert ada.get(answer.json["job_id"])["warning"] == answer.json["warning"]


class TestIdempotencyKey:
    def test_a_repeat_is_the_same_job_and_tells_where_it_is_now(self, ada: Person) -> None:
        first = ada.submit("again", name="again")
        ada.call("POST", f"/v1/jobs/{first.json['job_id']}/cancel")
        assert ada.submit("again", name="again").json["job_id"] == first.json["job_id"]
        assert ada.submit("again", name="again", gpu_type="T4").status == 200, "means the same"

    @pytest.mark.parametrize(
        "changes",
        [
            {"gpu_count": 2},
            {"duration_hours": 2},
            {"name": "other"},
            {"env_vars": {"A": "2"}},
            {"ssh_public_keys": [OTHER_KEY]},
            {"ssh_public_keys": [PUBLIC_KEY, OTHER_KEY]},
        ],
        ids=str,
    )
    def test_another_body_is_409(self, ada: Person, changes: dict[str, Any]) -> None:
        first = ada.submit("fixed", name="fixed", env_vars={"A": "1"})
        answer = ada.submit("fixed", **{"name": "fixed", "env_vars": {"A": "1"}, **changes})
        assert (answer.status, answer.json["code"]) == (409, "idempotency_key_reused")
        assert ada.submit("fixed", name="fixed", env_vars={"A": "1"}).json == first.json

    def test_github_may_have_changed_in_between(
        self, ada: Person, github: FakeGitHub, module_database: str
    ) -> None:
        github.keys["mover"] = [OTHER_KEY]
        first = ada.submit("moved", github_user="mover").json["job_id"]
        github.keys["mover"] = []
        make_older(module_database, "github_keys", "fetched_at", timedelta(days=1))
        assert ada.submit("moved", github_user="mover").json["job_id"] == first

    def test_a_key_belongs_to_its_user(self, ada: Person, eve: Person) -> None:
        assert ada.submit("shared").json["job_id"] != eve.submit("shared").json["job_id"]

    def test_after_a_day_it_means_a_new_request(
        self, make_person: Callable[..., Person], module_database: str
    ) -> None:
        zoe = make_person("zoe")
        seen: list[str] = []
        for gpus in (1, 2, 4):
            seen.append(zoe.submit("daily", gpu_count=gpus).json["job_id"])
            assert zoe.submit("daily", gpu_count=gpus).json["job_id"] == seen[-1]
            make_older(module_database, "reservation_records", "created_at", timedelta(hours=25))
        assert len(set(seen)) == 3

    @pytest.mark.parametrize("key", ["x" * 201])
    def test_a_key_that_is_too_long_is_422(self, ada: Person, key: str) -> None:
        assert ada.submit(key).status == 422


def test_a_submit_is_dated_now(ada: Person) -> None:
    created = datetime.fromisoformat(ada.get(ada.submit().json["job_id"])["created_at"])
    assert abs(datetime.now(UTC) - created) < timedelta(minutes=1)
