"""The check at GitHub: the API as a process, moto as STS, a small server as GitHub, real SSH keys."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.api_server import Answer, ApiServer
from tests.support.aws_login import LOGIN, PUBLIC_NAME, World, log_in, log_in_raw, refusal
from tests.support.github import FakeGitHub
from tests.support.sigv4 import Key, Question, sign
from tests.support.ssh_signing import make_ssh_key, ssh_sign
from tests.support.sts import Sts
from tests.support.zygote import run_gpu_dev

CHALLENGE = "/v1/auth/github-challenge"
NAMESPACE = f"gpu-dev@{PUBLIC_NAME}"
NUMBERS = itertools.count(1)


class Person:
    """Somebody with an AWS identity, an SSH key, and a user at GitHub who has published it."""

    def __init__(self, name: str, sts: Sts, github: FakeGitHub, folder: Path) -> None:
        self.name, self.sts, self.github = name, sts, github
        self.aws: Key = sts.assume(f"{name}@example.org")
        self.ssh_key = folder / ".ssh" / "id_ed25519"
        self.home = folder
        github.keys[name] = [make_ssh_key(self.ssh_key)]
        self.join()

    def join(self) -> None:
        self.github.add_member("acme", self.name)
        self.github.add_member("acme", self.name, team="gpu")
        self.github.permit("acme/models", self.name, "write")

    def sts_request(self) -> object:
        return sign(Question(self.sts.url, headers={"x-gpu-dev-nonce": os.urandom(8).hex()}), self.aws)

    def ask(self, server: ApiServer, github_user: str | None = None) -> Answer:
        body = {"sts_request": self.sts_request(), "github_user": github_user}
        return server.call("POST", CHALLENGE, body)

    def challenge(self, server: ApiServer, github_user: str | None = None) -> str:
        answer = self.ask(server, github_user or self.name)
        assert answer.status == 200, answer.text
        return str(answer.json["challenge"])

    def show(self, server: ApiServer, challenge: str, signature: str) -> Answer:
        proof = {"challenge": challenge, "signature": signature}
        return server.call("POST", LOGIN, {"sts_request": self.sts_request(), "github_proof": proof})

    def prove(self, server: ApiServer, github_user: str | None = None, namespace: str = NAMESPACE) -> Answer:
        challenge = self.challenge(server, github_user)
        return self.show(server, challenge, ssh_sign(self.ssh_key, challenge, namespace))

    def log_in(self, server: ApiServer) -> Answer:
        return log_in(server, self.sts_request())


@pytest.fixture(scope="module")
def world(module_database: str, sts: Sts, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(module_database, sts, tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="module")
def settings(github: FakeGitHub) -> dict[str, str]:
    return {
        "GPU_DEV_GITHUB_URL": github.url,
        "GPU_DEV_GITHUB_API_URL": github.api_url,
        "GPU_DEV_GITHUB_ORGANISATION": "acme",
        "GPU_DEV_GITHUB_TEAM": "gpu",
        "GPU_DEV_GITHUB_REPOSITORY": "acme/models",
        "GPU_DEV_GITHUB_TOKEN": "token-of-the-server",
    }


@pytest.fixture(scope="module")
def server(world: World, settings: dict[str, str]) -> Iterator[ApiServer]:
    with world.api(**settings) as server:
        yield server


@pytest.fixture
def person(sts: Sts, github: FakeGitHub, tmp_path: Path) -> Person:
    """A new one for each test."""
    return Person(f"person-{next(NUMBERS)}", sts, github, tmp_path)


def test_a_first_login_is_asked_for_a_proof_and_later_ones_are_not(server: ApiServer, person: Person) -> None:
    assert refusal(person.log_in(server)) == (403, "github_proof_needed")
    given = person.prove(server)
    assert given.status == 200, given.text
    assert given.json["github_user"] == person.name
    assert person.log_in(server).json["github_user"] == person.name
    assert person.github.tokens == {"Bearer token-of-the-server"}


def test_older_clients_are_told_what_to_do_and_work_once_bound(server: ApiServer, person: Person) -> None:
    answer = log_in_raw(server, person.aws)
    assert refusal(answer) == (403, "github_proof_needed")
    assert "gpu-dev login --github-user" in answer.json["hint"]
    person.prove(server)
    assert log_in_raw(server, person.aws).status == 200


def test_the_name_is_needed_once(server: ApiServer, person: Person) -> None:
    assert refusal(person.ask(server)) == (400, "github_user_needed")
    person.prove(server)
    again = person.ask(server)
    assert (again.status, again.json["github_user"]) == (200, person.name)
    assert again.json["public_keys"] == person.github.keys[person.name]
    assert again.headers["cache-control"] == "no-store"


def test_a_challenge_is_good_for_one_try_of_who_asked(
    server: ApiServer, person: Person, sts: Sts, tmp_path: Path
) -> None:
    challenge = person.challenge(server)
    signature = ssh_sign(person.ssh_key, challenge, NAMESPACE)
    eve = Person(f"{person.name}-eve", sts, person.github, tmp_path / "eve")
    assert refusal(eve.show(server, challenge, signature)) == (401, "github_challenge_unknown")
    assert person.show(server, challenge, signature).status == 200
    assert refusal(person.show(server, challenge, signature)) == (401, "github_challenge_unknown")
    wrong = person.challenge(server)
    assert refusal(person.show(server, wrong, "nonsense")) == (401, "github_signature_malformed")
    right = ssh_sign(person.ssh_key, wrong, NAMESPACE)
    assert refusal(person.show(server, wrong, right)) == (401, "github_challenge_unknown")


def test_what_was_signed_for_another_server_is_refused(server: ApiServer, person: Person) -> None:
    answer = person.prove(server, namespace="gpu-dev@other.example.org")
    assert refusal(answer) == (401, "github_other_server")


def test_nobody_can_sign_for_somebody_else(
    server: ApiServer, person: Person, sts: Sts, tmp_path: Path
) -> None:
    eve = Person(f"{person.name}-eve", sts, person.github, tmp_path / "eve")
    assert refusal(eve.prove(server, person.name)) == (401, "github_key_unknown")
    assert refusal(eve.log_in(server)) == (403, "github_proof_needed")


def test_a_signature_of_another_challenge_is_refused(server: ApiServer, person: Person) -> None:
    first, second = person.challenge(server), person.challenge(server)
    signature = ssh_sign(person.ssh_key, first, NAMESPACE)
    assert refusal(person.show(server, second, signature)) == (401, "github_signature_wrong")


def test_two_users_are_never_one_at_github(
    server: ApiServer, person: Person, sts: Sts, tmp_path: Path
) -> None:
    assert person.prove(server).status == 200
    friend = Person(f"{person.name}-friend", sts, person.github, tmp_path / "friend")
    challenge = friend.challenge(server, person.name)
    lent = ssh_sign(person.ssh_key, challenge, NAMESPACE)
    assert refusal(friend.show(server, challenge, lent)) == (403, "github_user_taken")


@pytest.mark.parametrize(
    "lost,code",
    [
        ("/orgs/acme/memberships/{}", "github_not_a_member"),
        ("/orgs/acme/teams/gpu/memberships/{}", "github_not_in_team"),
        ("/repos/acme/models/collaborators/{}/permission", "github_no_push_access"),
    ],
    ids=["organisation", "team", "repository"],
)
def test_who_lacks_something_may_not_come_in_and_may_as_soon_as_it_is_given(
    server: ApiServer, person: Person, lost: str, code: str
) -> None:
    del person.github.facts[lost.format(person.name)]
    assert refusal(person.prove(server)) == (403, code)
    person.join()
    assert person.log_in(server).status == 200


def test_a_good_standing_is_not_asked_for_again_at_once(server: ApiServer, person: Person) -> None:
    assert person.prove(server).status == 200
    asked = len(person.github.asked)
    assert person.log_in(server).status == 200
    assert len(person.github.asked) == asked


def test_an_old_proof_has_to_be_renewed(world: World, server: ApiServer, person: Person) -> None:
    assert person.prove(server).status == 200
    world.execute("UPDATE api_users SET github_proved_at = github_proved_at - interval '31 days'")
    assert refusal(person.log_in(server)) == (403, "github_proof_expired")
    assert person.prove(server).status == 200
    assert person.log_in(server).status == 200


def test_a_user_without_keys_cannot_prove_anything(server: ApiServer, person: Person) -> None:
    assert refusal(person.ask(server, "nobody-there")) == (400, "github_no_keys")
    assert refusal(person.ask(server, "-not/a name")) == (400, "bad_github_user")


@pytest.fixture(scope="module")
def deaf(world: World, settings: dict[str, str]) -> Iterator[ApiServer]:
    """A server that cannot reach GitHub, and bears no failed login."""
    nowhere = "http://127.0.0.1:1"
    changes = {"GPU_DEV_GITHUB_URL": nowhere, "GPU_DEV_GITHUB_API_URL": nowhere}
    with world.api(**{**settings, **changes, "GPU_DEV_LOGIN_FAILURES": "1"}) as server:
        yield server


def test_a_github_that_does_not_answer_refuses_nobody(
    world: World, server: ApiServer, deaf: ApiServer, person: Person
) -> None:
    assert person.prove(server).status == 200
    world.execute("DELETE FROM login_failures")
    for answer in (person.log_in(deaf), person.ask(deaf, person.name)):
        assert refusal(answer) == (503, "identity_unavailable")
        assert "retry-after" in answer.headers


def test_being_asked_for_a_proof_is_not_a_failed_login(world: World, deaf: ApiServer, person: Person) -> None:
    world.execute("DELETE FROM login_failures")
    for _ in range(3):
        assert refusal(person.log_in(deaf)) == (403, "github_proof_needed")


def test_the_command_line_proves_it_by_itself(server: ApiServer, person: Person) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(person.home),
        "GPU_DEV_API_URL": f"http://{server.authority}",
        "AWS_ENDPOINT_URL_STS": person.sts.url,
        "AWS_ACCESS_KEY_ID": person.aws.access_key_id,
        "AWS_SECRET_ACCESS_KEY": person.aws.secret,
        "AWS_SESSION_TOKEN": person.aws.token or "",
    }

    def gpu_dev(*arguments: str) -> tuple[int, Any]:
        done = run_gpu_dev(("gpu-dev", *arguments, "--json"), environment, 60)
        return done.returncode, json.loads(done.stderr if done.returncode else done.stdout)

    code, answer = gpu_dev("whoami")
    assert (code, answer["code"]) == (2, "github_user_needed")
    code, answer = gpu_dev("login", "--github-user", person.name)
    assert (code, answer["github_user"]) == (0, person.name)
    config = json.loads((person.home / ".config" / "gpu-dev" / "config.json").read_text())
    assert config == {"github_user": person.name}
    assert gpu_dev("login")[0] == 0
