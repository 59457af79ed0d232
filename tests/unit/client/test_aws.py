"""Logging in by AWS from the client: what is signed, with whose credentials, and what may be missing."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gpudev.client.config import AwsPlace, find_target, read_surroundings
from gpudev.client.errors import LoginFailed, NotAllowed, Unreachable
from gpudev.client.login import find_sts, sign_login
from gpudev.client.session import connect
from tests.support.fake_api import FakeApi, Reply, login_answer
from tests.support.sigv4 import Key, Question, sign
from tests.unit.client.conftest import Home

KEY = Key("AKIAOFTHEENVIRONMENT", "secret-of-the-environment")
LOGIN = ("POST", "/v1/auth/aws-login")


@pytest.fixture(autouse=True)
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any AWS credentials; they can be written into this file."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "aws-credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "aws-config"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return path


@pytest.fixture
def in_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEY.secret)


@pytest.fixture
def elsewhere(api: FakeApi, home: Home) -> Iterator[Any]:
    """A client that was given an address by hand, for which there is no login file."""
    with connect(replace(home.surroundings, api_url=api.url.replace("127.0.0.1", "localhost"))) as client:
        yield client


@pytest.mark.usefixtures("in_environment")
def test_the_signature_is_the_one_that_aws_describes() -> None:
    request = sign_login("gpu-dev.example.org", AwsPlace("eu-west-1")).sts_request
    at = datetime.strptime(request.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    nonce = {"x-gpu-dev-nonce": request.headers["X-GPU-Dev-Nonce"]}
    question = Question("https://sts.eu-west-1.amazonaws.com/", "gpu-dev.example.org", at=at, headers=nonce)
    expected: dict[str, Any] = sign(question, KEY, region="eu-west-1")
    assert request.headers["Authorization"] == expected["headers"]["authorization"]
    assert (request.url, request.body) == (expected["url"], expected["body"])


@pytest.mark.usefixtures("in_environment")
def test_two_logins_of_one_second_differ() -> None:
    first, second = (sign_login("x", AwsPlace()).sts_request.headers for _ in range(2))
    assert first["Authorization"] != second["Authorization"]


@pytest.mark.usefixtures("in_environment")
def test_the_secret_stays_here_and_the_server_is_named_as_configured(api: FakeApi, elsewhere: Any) -> None:
    api.on(*LOGIN, Reply(body={**login_answer("key-1"), "aws_arn": "arn:aws:sts::1:assumed-role/r/ada"}))
    assert elsewhere.log_in().aws_arn == "arn:aws:sts::1:assumed-role/r/ada"
    (seen,) = api.seen(*LOGIN)
    assert seen.json["sts_request"]["headers"]["X-GPU-Dev-Server"] == "localhost"
    assert KEY.secret.encode() not in seen.body


@pytest.mark.usefixtures("in_environment")
def test_a_refusal_is_passed_on(api: FakeApi, elsewhere: Any) -> None:
    api.on(*LOGIN, Reply(403, {"detail": "Not this role.", "code": "role_not_allowed", "hint": "Ask."}))
    with pytest.raises(NotAllowed, match="Not this role") as caught:
        elsewhere.whoami()
    assert (caught.value.code, caught.value.hint) == ("role_not_allowed", "Ask.")


@pytest.mark.usefixtures("in_environment")
def test_the_profile_of_our_name_comes_first(profiles: Path) -> None:
    profiles.write_text("[gpu-dev]\naws_access_key_id = AKIAOFTHEPROFILE0000\naws_secret_access_key = s\n")
    assert (
        "Credential=AKIAOFTHEPROFILE0000/" in sign_login("x", AwsPlace()).sts_request.headers["Authorization"]
    )


def test_no_credentials_are_said_to_be_missing(elsewhere: Any) -> None:
    with pytest.raises(LoginFailed, match="AWS credentials are needed") as caught:
        elsewhere.whoami()
    assert (caught.value.code, "aws configure sso" in caught.value.hint) == ("no_aws_credentials", True)


def test_a_profile_that_cannot_be_used_does_not_fall_back(profiles: Path, in_environment: None) -> None:
    profiles.write_text("[gpu-dev]\naws_access_key_id = AKIAOFTHEPROFILE0000\n")
    with pytest.raises(LoginFailed, match="cannot be used"):
        sign_login("x", AwsPlace())


def test_a_missing_botocore_is_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.auth", None)
    with pytest.raises(LoginFailed, match="not installed") as caught:
        sign_login("x", AwsPlace())
    assert "gpu-dev[aws]" in caught.value.hint


@pytest.mark.parametrize(
    "environ,url",
    [
        ({}, "https://sts.us-east-2.amazonaws.com/"),
        ({"AWS_DEFAULT_REGION": "us-west-1"}, "https://sts.us-west-1.amazonaws.com/"),
        ({"AWS_DEFAULT_REGION": "x", "AWS_REGION": "eu-west-1"}, "https://sts.eu-west-1.amazonaws.com/"),
        ({"AWS_REGION": "cn-north-1"}, "https://sts.cn-north-1.amazonaws.com.cn/"),
        ({"AWS_ENDPOINT_URL_STS": "http://127.0.0.1:5000"}, "http://127.0.0.1:5000/"),
    ],
)
def test_the_environment_says_which_sts_to_sign_for(environ: dict[str, str], url: str) -> None:
    here = read_surroundings({"HOME": "/nowhere", "GPU_DEV_API_URL": "https://gpu.example.org", **environ})
    assert find_sts(find_target(here).aws) == url


def test_a_server_that_is_not_there_is_told_before_missing_credentials(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        nobody = f"http://127.0.0.1:{probe.getsockname()[1]}"
    here = replace(home.surroundings, api_url=nobody)
    with connect(here) as client, pytest.raises(Unreachable, match="does not answer"):
        client.list()
