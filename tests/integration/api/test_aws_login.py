"""Logging in by AWS: the API as a process, and moto as an STS that really checks signatures."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.api_server import ApiServer
from tests.support.aws_login import LOGIN, PUBLIC_NAME, World, log_in, log_in_raw, refusal
from tests.support.fake_api import running_fake_api
from tests.support.sigv4 import Key, Question, sign
from tests.support.sts import ACCOUNT, ROLE, Sts
from tests.support.zygote import run_gpu_dev


@pytest.fixture(scope="module")
def world(module_database: str, sts: Sts, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(module_database, sts, tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="module")
def server(world: World) -> Iterator[ApiServer]:
    with world.api() as server:
        yield server


@pytest.fixture(scope="module")
def ada(sts: Sts) -> Key:
    return sts.assume("ada@example.org")


def test_a_signed_request_gives_a_key_that_works(server: ApiServer, sts: Sts, ada: Key) -> None:
    answer = log_in(server, sign(Question(sts.url, PUBLIC_NAME), ada))
    assert answer.status == 200, answer.text
    given = answer.json
    assert given["username"] == "ada-example.org"
    assert given["aws_arn"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/{ROLE}/ada@example.org"
    assert (given["key_prefix"], given["ttl_hours"]) == (given["api_key"][:8], 2)
    assert isinstance(given["user_id"], int)
    assert answer.headers["cache-control"] == "no-store"
    me = server.call("GET", "/v1/me", key=given["api_key"]).json
    assert (me["username"], me["aws_arn"]) == (given["username"], given["aws_arn"])


def test_credentials_themselves_are_taken_from_older_clients(server: ApiServer, ada: Key) -> None:
    answer = log_in_raw(server, ada)
    assert (answer.status, answer.json["username"]) == (200, "ada-example.org")
    assert log_in_raw(server, ada).status == 200


@pytest.mark.parametrize(
    "question,code",
    [
        pytest.param({"server": "other.example.org"}, "sts_other_server", id="for-another-server"),
        pytest.param({"server": None}, "sts_header_unsigned", id="for-no-server"),
        pytest.param({"body": "Action=GetSessionToken&Version=2011-06-15"}, "sts_wrong_action", id="action"),
        pytest.param({"at": datetime.now(UTC) - timedelta(minutes=6)}, "sts_too_old", id="old"),
        pytest.param({"at": datetime.now(UTC) + timedelta(hours=6)}, "sts_too_old", id="from-the-future"),
        pytest.param({"url": "https://sts.evil.example/"}, "sts_wrong_host", id="other-host"),
        pytest.param({"url": "https://sts.amazonaws.com/"}, "sts_wrong_host", id="not-the-configured-host"),
        pytest.param({"headers": {"accept": "application/json"}}, "sts_malformed", id="odd-header"),
    ],
)
def test_what_was_not_meant_for_us_is_refused(
    server: ApiServer, sts: Sts, ada: Key, question: dict[str, Any], code: str
) -> None:
    request = sign(Question(**{"url": sts.url, **question}), ada)
    assert refusal(log_in(server, request)) == (401, code)


def test_an_altered_header_breaks_the_signature(server: ApiServer, sts: Sts, ada: Key) -> None:
    request: dict[str, Any] = sign(Question(sts.url, "other.example.org"), ada)
    request["headers"]["x-gpu-dev-server"] = PUBLIC_NAME
    assert refusal(log_in(server, request)) == (401, "sts_refused")


def test_a_signature_with_a_wrong_secret_is_refused(server: ApiServer, sts: Sts, ada: Key) -> None:
    request = sign(Question(sts.url), Key(ada.access_key_id, "guessed", ada.token))
    assert refusal(log_in(server, request)) == (401, "sts_refused")


def test_nobody_but_sts_is_ever_spoken_to(server: ApiServer, sts: Sts, ada: Key) -> None:
    with running_fake_api() as elsewhere:
        for url in (elsewhere.url, f"{sts.url}@{elsewhere.url.removeprefix('http://')}", f"{sts.url}/x"):
            assert refusal(log_in(server, sign(Question(url), ada))) == (401, "sts_wrong_host")
        pointed: dict[str, Any] = sign(Question(sts.url), ada)
        pointed["headers"]["Host"] = pointed["headers"].pop("host")
        pointed["headers"]["Host"] = elsewhere.url.removeprefix("http://")
        assert refusal(log_in(server, pointed)) == (401, "sts_wrong_host")
        assert elsewhere.requests == []


def test_a_signed_request_works_once_on_whichever_replica(
    world: World, server: ApiServer, sts: Sts, ada: Key
) -> None:
    request = sign(Question(sts.url, headers={"x-gpu-dev-nonce": "once"}), ada)
    another = sign(Question(sts.url, headers={"x-gpu-dev-nonce": "twice"}), ada)
    assert log_in(server, request).status == 200
    assert refusal(log_in(server, request)) == (401, "sts_replayed")
    with world.api() as replica:
        assert refusal(log_in(replica, request)) == (401, "sts_replayed")
        assert log_in(replica, another).status == 200


def test_another_account_may_not_come_in(server: ApiServer, sts: Sts) -> None:
    stranger = sts.assume("ada", account="999999999999")
    assert refusal(log_in(server, sign(Question(sts.url), stranger))) == (403, "account_not_allowed")


def test_another_role_may_not_come_in(server: ApiServer, sts: Sts) -> None:
    guest = sts.assume("ada", role="ReadOnly")
    assert refusal(log_in(server, sign(Question(sts.url), guest))) == (403, "role_not_allowed")
    assert refusal(log_in_raw(server, guest)) == (403, "role_not_allowed")


def test_a_user_without_a_role_may_not_come_in(server: ApiServer, sts: Sts) -> None:
    assert refusal(log_in(server, sign(Question(sts.url), sts.root))) == (403, "role_not_allowed")


def test_two_identities_are_never_one_user(server: ApiServer, sts: Sts) -> None:
    first, second = sts.assume("bob@corp"), sts.assume("bob=corp")
    assert log_in(server, sign(Question(sts.url), first)).json["username"] == "bob-corp"
    assert refusal(log_in(server, sign(Question(sts.url), second))) == (403, "username_taken")
    assert refusal(log_in_raw(server, second)) == (403, "username_taken")
    assert log_in_raw(server, first).json["username"] == "bob-corp"


def test_the_owner_of_the_machine_keeps_the_name(server: ApiServer, sts: Sts) -> None:
    impostor = sts.assume(pwd.getpwuid(os.getuid()).pw_name)
    assert refusal(log_in(server, sign(Question(sts.url), impostor))) == (403, "username_taken")


def test_a_disabled_user_stays_disabled(world: World, server: ApiServer, sts: Sts) -> None:
    mallory = sts.assume("mallory")
    assert log_in_raw(server, mallory).status == 200
    world.execute("UPDATE api_users SET is_active = false WHERE username = 'mallory'")
    assert refusal(log_in_raw(server, mallory)) == (403, "user_disabled")
    assert refusal(log_in(server, sign(Question(sts.url), mallory))) == (403, "user_disabled")


def test_bad_credentials_are_refused_and_not_told_again(server: ApiServer, ada: Key) -> None:
    secret = "w" * 40
    answer = log_in_raw(server, ada, aws_secret_access_key=secret)
    assert refusal(answer) == (401, "bad_credentials")
    assert secret not in answer.text


@pytest.mark.parametrize(
    "change",
    [
        {"aws_access_key_id": "AKIA-no"},
        {"aws_access_key_id": "AKIA0000000000000\r\nX: y"},
        {"aws_secret_access_key": "k" * 39},
        {"aws_session_token": "t" * 2049},
        {"aws_session_token": "t" * 99 + "\n"},
    ],
    ids=str,
)
def test_credentials_that_cannot_be_any_do_not_fit(
    server: ApiServer, ada: Key, change: dict[str, str]
) -> None:
    answer = log_in_raw(server, ada, **change)
    assert answer.status == 422
    assert all(value not in answer.text for value in change.values())


@pytest.mark.parametrize("body", [{}, {"sts_request": {}}, {"sts_request": {"url": 1}}, []], ids=str)
def test_a_body_of_neither_form_does_not_fit(server: ApiServer, body: object) -> None:
    assert server.call("POST", LOGIN, body).status == 422


def test_a_body_that_is_too_long_is_not_read(server: ApiServer) -> None:
    answer = server.call("POST", LOGIN, {"sts_request": "x" * 100_000})
    assert refusal(answer) == (413, "body_too_large")


def test_credentials_are_not_taken_unless_the_operator_allows_it(world: World, sts: Sts, ada: Key) -> None:
    with world.api(GPU_DEV_ACCEPT_AWS_CREDENTIALS=None) as server:
        refused = log_in_raw(server, ada)
        assert refusal(refused) == (403, "credentials_not_taken")
        assert "GPU_DEV_ACCEPT_AWS_CREDENTIALS=true" in refused.json["detail"]
        request = sign(Question(sts.url, headers={"x-gpu-dev-nonce": "n"}), ada)
        assert log_in(server, request).status == 200


def test_an_admin_is_an_identity_and_not_whoever_has_the_name_first(world: World, sts: Sts) -> None:
    admins = ",".join(f"arn:aws:sts::{ACCOUNT}:assumed-role/{ROLE}/{name}" for name in ("boss", "chief"))
    others = "999999999999"
    with world.api(GPU_DEV_ADMINS=admins, ALLOWED_AWS_ACCOUNTS=f"{ACCOUNT},{others}") as server:

        def is_admin(key: Key) -> bool:
            given = log_in(server, sign(Question(sts.url), key)).json
            return server.call("GET", "/v1/me", key=given["api_key"]).json["is_admin"] is True

        assert not is_admin(sts.assume("boss", account=others)), "of another account, and first"
        assert refusal(log_in(server, sign(Question(sts.url), sts.assume("boss")))) == (403, "username_taken")
        assert is_admin(sts.assume("chief"))


def test_a_server_whose_admins_are_usernames_does_not_start(world: World) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(world.folder),
        "GPU_DEV_ADMINS": "boss",
        "GPU_DEV_DATABASE_URL": world.dsn,
        "GPU_DEV_API_PORT": "0",
    }
    done = run_gpu_dev(("gpu-dev", "server", "api"), environment, 60)
    assert done.returncode != 0
    assert '"boss" in GPU_DEV_ADMINS names no identity' in done.stderr
    assert "Traceback" not in done.stderr
    assert "local:boss" in done.stderr


def test_the_servers_own_account_may_come_in_by_default(world: World, sts: Sts, ada: Key) -> None:
    own = {"AWS_ACCESS_KEY_ID": sts.root.access_key_id, "AWS_SECRET_ACCESS_KEY": sts.root.secret}
    with world.api(ALLOWED_AWS_ACCOUNTS=None, GPU_DEV_STATE_DIR=None, **own) as server:
        assert log_in_raw(server, ada).status == 200
        stranger = sts.assume("ada", account="999999999999")
        assert refusal(log_in_raw(server, stranger)) == (403, "account_not_allowed")


def test_without_an_account_there_is_no_aws_login(world: World, ada: Key) -> None:
    with world.api(ALLOWED_AWS_ACCOUNTS=None, GPU_DEV_STATE_DIR=None) as server:
        assert refusal(log_in_raw(server, ada)) == (404, "aws_login_off")


def test_one_machine_has_no_aws_login_unless_accounts_are_named(world: World, ada: Key) -> None:
    with world.api(ALLOWED_AWS_ACCOUNTS=None) as server:
        assert refusal(log_in_raw(server, ada)) == (404, "aws_login_off")


def test_nobody_is_asked_who_they_are_at_github(server: ApiServer, sts: Sts, ada: Key) -> None:
    body = {"sts_request": sign(Question(sts.url, headers={"x-gpu-dev-nonce": "github"}), ada)}
    answer = server.call("POST", "/v1/auth/github-challenge", {**body, "github_user": "ada"})
    assert refusal(answer) == (404, "github_check_off")


def test_an_sts_that_does_not_answer_is_nobodys_fault(world: World, ada: Key) -> None:
    with world.api(GPU_DEV_STS_ENDPOINT="http://127.0.0.1:1") as server:
        answer = log_in_raw(server, ada)
        assert refusal(answer) == (503, "identity_unavailable")
        assert "retry-after" in {name.lower() for name in answer.headers}


def test_the_command_line_logs_in_by_the_profile_of_its_name(
    server: ApiServer, sts: Sts, ada: Key, tmp_path: Path
) -> None:
    profiles = tmp_path / "credentials"
    lines = {"aws_access_key_id": ada.access_key_id, "aws_secret_access_key": ada.secret}
    lines["aws_session_token"] = ada.token or ""
    profiles.write_text("[gpu-dev]\n" + "".join(f"{name} = {value}\n" for name, value in lines.items()))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "GPU_DEV_API_URL": f"http://{server.authority}",
        "AWS_SHARED_CREDENTIALS_FILE": str(profiles),
        "AWS_ENDPOINT_URL_STS": sts.url,
        # Not those of the profile, which comes first.
        "AWS_ACCESS_KEY_ID": sts.root.access_key_id,
        "AWS_SECRET_ACCESS_KEY": sts.root.secret,
    }

    def gpu_dev(*arguments: str) -> Any:
        done = run_gpu_dev(("gpu-dev", *arguments, "--json"), environment, 60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    answer = gpu_dev("login")
    assert answer["username"] == "ada-example.org"
    assert "api_key" not in answer
    assert gpu_dev("whoami")["aws_arn"] == answer["aws_arn"]
