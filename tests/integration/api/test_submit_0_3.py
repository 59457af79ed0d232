"""What clients of version 0.3 send is read as they mean it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.integration.api.conftest import Person
from tests.support.client_0_3 import Client03, Wish, make_body
from tests.support.github import FakeGitHub
from tests.support.reservations import PUBLIC_KEY


@pytest.fixture(autouse=True)
def _keys(github: FakeGitHub) -> None:
    github.keys["ada"] = [PUBLIC_KEY]


@pytest.fixture
def old(ada: Person) -> Client03:
    return Client03(ada.call)


def submit(old: Client03, wish: Wish, **more: Any) -> dict[str, Any]:
    answer = old.submit(wish, **more)
    assert answer.status == 200, answer.text
    job = old.poll(answer.json["job_id"])
    assert job is not None
    return job


def test_its_id_is_the_id(old: Client03) -> None:
    reservation_id = str(uuid.uuid4())
    assert old.poll(reservation_id) is None
    answer = old.submit(Wish(gpu_count=2, hours=3), reservation_id).json
    assert (answer["job_id"], answer["reservation_id"], answer["status"]) == (
        reservation_id,
        reservation_id,
        "pending",
    )
    job = old.poll(reservation_id)
    assert job is not None
    assert (job["gpu_type"], job["gpu_count"], job["duration_hours"]) == ("t4", 2, 3)
    assert (job["user_id"], job["github_user"]) == ("ada", "ada")
    assert job["instance_type"] == "g4dn.12xlarge", "what it sent is not looked at"
    assert old.poll(reservation_id[:8]) == job


def test_a_repeat_is_the_same_request_whatever_else_it_says(old: Client03) -> None:
    reservation_id = str(uuid.uuid4())
    first = old.submit(Wish(name="repeated"), reservation_id)
    again = old.submit(Wish(name="repeated", gpu_count=4), reservation_id.upper())
    assert (again.status, again.json["job_id"]) == (200, reservation_id)
    assert first.json == again.json
    assert len([job for job in old.list() if job["job_id"] == reservation_id]) == 1


def test_an_id_of_somebody_else_is_409(old: Client03, eve: Person) -> None:
    taken = eve.submit().json["job_id"]
    near = f"{taken[:8]}-{str(uuid.uuid4())[9:]}"
    for reservation_id in (taken, near):
        answer = old.submit(Wish(), reservation_id)
        assert (answer.status, answer.json["code"]) == (409, "id_taken")
        assert old.poll(reservation_id) is None


def test_its_own_first_characters_are_taken_for_ever(old: Client03) -> None:
    taken = str(uuid.uuid4())
    old.submit(Wish(), taken)
    assert old.submit(Wish(), f"{taken[:8]}-{str(uuid.uuid4())[9:]}").status == 409


def test_many_repeats_at_once_are_one_request(old: Client03) -> None:
    reservation_id = str(uuid.uuid4())
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: old.submit(Wish(name="eager"), reservation_id), range(16)))
    assert {(answer.status, answer.json["job_id"]) for answer in answers} == {(200, reservation_id)}
    assert [job["name"] for job in old.list() if job["name"].startswith("eager")] == ["eager"]


def test_a_prefix_that_fits_two_lists_them(old: Client03, ada: Person) -> None:
    start = uuid.uuid4().hex[:6]
    ids = [f"{start}{number:02}-{str(uuid.uuid4())[9:]}" for number in range(2)]
    for reservation_id in ids:
        assert old.submit(Wish(), reservation_id).status == 200
    answer = ada.call("GET", f"/v1/jobs/{start}")
    assert (answer.status, answer.json["code"]) == (409, "ambiguous_id")
    assert all(reservation_id[:8] in answer.json["detail"] for reservation_id in ids)
    assert ada.get(ids[0][:8])["job_id"] == ids[0]


@pytest.mark.parametrize(
    "wished,name",
    [
        ("my-run", "my-run"),
        ("My Run!", "my-run"),
        ("train - Node 1/2", "train-node-1-2"),
        ("x" * 60, "x" * 40),
        ("deadbeef", "run-deadbeef-{id8}"),
        ("7f3a91c2-1111", "run-7f3a91c2-1111-{id8}"),
        ("--", "t4-{id8}"),
        ("日本", "t4-{id8}"),
        ("", "t4-{id8}"),
        (None, "t4-{id8}"),
    ],
)
def test_its_name_is_taken_as_far_as_it_goes(
    make_person: Callable[..., Person], wished: str | None, name: str
) -> None:
    old = Client03(make_person(f"person-{uuid.uuid4().hex[:6]}").call)
    job = submit(old, Wish(name=wished))
    assert job["name"] == name.format(id8=job["job_id"][:8])


def test_a_name_that_is_in_use_gets_something_added(old: Client03) -> None:
    names = [submit(old, Wish(name="Popular Name"))["name"] for _ in range(3)]
    assert names[0] == "popular-name"
    assert all(name.startswith("popular-name-") for name in names[1:])
    assert len(set(names)) == 3
    long = [submit(old, Wish(name="y" * 50))["name"] for _ in range(2)]
    assert [len(name) for name in long] == [40, 40]


def test_several_nodes_are_several_reservations(old: Client03) -> None:
    names = [submit(old, Wish(name=f"gang - Node {number}/2"))["name"] for number in (1, 2)]
    assert names == ["gang-node-1-2", "gang-node-2-2"]


@pytest.mark.parametrize("switch", ["JUPYTER_ENABLED", "RECREATE_ENV", "PRESERVE_ENTRYPOINT"])
def test_a_switch_with_nothing_behind_it_is_passed_over_and_said(old: Client03, switch: str) -> None:
    answer = old.submit(Wish(env={switch: "true"}))
    assert answer.status == 200
    assert answer.json["warning"] in answer.json["message"]
    job = old.poll(answer.json["job_id"])
    assert job is not None
    assert (job["warning"], job["jupyter_enabled"]) == (answer.json["warning"], False)
    assert "warning" not in old.submit(Wish(env={switch: "false"}), disk_name="none").json


@pytest.mark.parametrize("more,field", [({"image": "me/mine:1"}, "image")])
def test_what_would_give_another_server_than_asked_for_is_refused(
    old: Client03, more: dict[str, str], field: str
) -> None:
    answer = old.submit(Wish(), **more)
    assert (answer.status, answer.json["code"]) == (400, "not_supported_yet")
    assert field in answer.json["detail"]


@pytest.mark.parametrize(
    "env,code",
    [
        ({"GPU_TYPE": "z9"}, "unknown_gpu_type"),
        ({"GPU_COUNT": "3"}, "bad_gpu_count"),
        ({"GPU_COUNT": "many"}, "bad_gpu_count"),
        ({"GPU_COUNT": ""}, "bad_gpu_count"),
        ({"RESERVATION_ID": "mine"}, "bad_reservation_id"),
        ({"GITHUB_USER": "no/body"}, "bad_github_user"),
        ({"GITHUB_USER": "keyless"}, "no_ssh_key"),
        ({"GITHUB_USER": ""}, "no_ssh_key"),
        ({"NVIDIA_VISIBLE_DEVICES": "all"}, "reserved_env_var"),
    ],
    ids=str,
)
def test_what_cannot_be_granted_says_why(old: Client03, env: dict[str, str], code: str) -> None:
    answer = old.submit(Wish(env=env))
    assert (answer.status, answer.json["code"]) == (400, code), answer.text


def test_only_variables_that_are_not_for_us_reach_the_server(ada: Person) -> None:
    """Another repeat with our form shows what was kept: it compares the environment."""
    body = make_body(Wish(env={"WANDB_MODE": "offline"}))
    del body["env_vars"]["RESERVATION_ID"]
    first = ada.call("POST", "/v1/jobs/submit", body, Idempotency_Key="old-env")
    ours = {"gpu_type": "t4", "gpu_count": 1, "duration_hours": 1, "github_user": "ada"}
    same = ada.call(
        "POST", "/v1/jobs/submit", {**ours, "env_vars": {"WANDB_MODE": "offline"}}, Idempotency_Key="old-env"
    )
    assert same.json["job_id"] == first.json["job_id"]


def test_in_the_form_of_today_its_variables_are_just_variables(ada: Person) -> None:
    chosen = str(uuid.uuid4())
    job = ada.submit(env_vars={"GPU_TYPE": "z9", "RESERVATION_ID": chosen, "POD_NAME": "x"}).json["job_id"]
    assert job != chosen
    assert ada.get(job)["gpu_type"] == "t4"
