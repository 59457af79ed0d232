"""Which signed requests are sent to STS: the address, the question, the headers, the time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gpudev.adapters.aws.sts import CheckedRequest, SigningRules, check_signed_request
from gpudev.domain.errors import Unauthenticated
from gpudev.ports.identity import SignedRequest
from tests.support.sigv4 import Key, Question, sign

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
STS = "https://sts.us-east-2.amazonaws.com/"
RULES = SigningRules(frozenset({"gpu-dev.example.org"}))
KEY = Key("ASIA0000000000000000", "secret", "token")


def make(**changes: Any) -> dict[str, Any]:
    question = {"url": STS, "server": "gpu-dev.example.org", "at": NOW, **changes}
    return sign(Question(**question), KEY)


def check(request: dict[str, Any], rules: SigningRules = RULES) -> CheckedRequest:
    return check_signed_request(SignedRequest(**request), rules, NOW)


def code_of(request: dict[str, Any], rules: SigningRules = RULES) -> str:
    with pytest.raises(Unauthenticated) as caught:
        check(request, rules)
    return caught.value.code


@pytest.mark.parametrize(
    "url",
    [
        "https://sts.amazonaws.com",
        "https://sts.amazonaws.com/",
        "https://sts.eu-west-1.amazonaws.com/",
        "https://sts.us-gov-west-1.amazonaws.com/",
        "https://sts.cn-north-1.amazonaws.com.cn/",
    ],
)
def test_every_sts_of_aws_is_known(url: str) -> None:
    assert check(make(url=url)).origin == url.removesuffix("/")


@pytest.mark.parametrize(
    "url",
    [
        "http://sts.amazonaws.com/",
        "https://sts.amazonaws.com:8443/",
        "https://sts.amazonaws.com.evil.example/",
        "https://sts.amazonaws.com@evil.example/",
        "https://evil.example/sts.amazonaws.com/",
        "https://evil.example#sts.amazonaws.com/",
        "https://sts.amazonaws.com/?Action=AssumeRole",
        "https://sts.amazonaws.com//evil.example/",
        "https://sts.amazonaws.com/\n",
        "https://sts.amazonaws.com\\@evil.example/",
        "https://sts.s3.amazonaws.com/",
        "https://sts.s3-us-west-2.amazonaws.com/",
        "https://sts.bucket.s3.amazonaws.com/",
        "https://sts.eu-west-1.evil.amazonaws.com/",
        "https://ec2.us-east-2.amazonaws.com/",
        "https://sts.cn-north-1.amazonaws.com/",
        "https://sts.us-east-2.amazonaws.com.cn/",
        "https://sts.us-east-٢.amazonaws.com/",
        "https://169.254.169.254/",
        "file:///etc/passwd",
        "",
    ],
)
def test_any_other_address_is_refused(url: str) -> None:
    assert code_of({**make(), "url": url}) == "sts_wrong_host"


def test_a_configured_address_is_the_only_one() -> None:
    rules = SigningRules(RULES.servers, "http://127.0.0.1:5000")
    assert check(make(url="http://127.0.0.1:5000/"), rules).origin == "http://127.0.0.1:5000"
    for url in (STS, "http://127.0.0.1:50001/", "http://127.0.0.1:5000/x", "http://127.0.0.1:5000//"):
        assert code_of(make(url=url), rules) == "sts_wrong_host"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "Action=GetSessionToken&Version=2011-06-15",
        "Action=GetCallerIdentity&Version=2011-06-15&Action=AssumeRole",
        "action=GetCallerIdentity&Version=2011-06-15",
    ],
)
def test_nothing_else_is_asked(body: str) -> None:
    assert code_of(make(body=body)) == "sts_wrong_action"


def test_only_signed_headers_are_sent() -> None:
    request = make(unsigned={"X-Forwarded-For": "1.2.3.4", "Accept": "application/json"})
    assert set(check(request).headers) == {
        "authorization",
        "content-type",
        "x-amz-date",
        "x-amz-security-token",
        "x-gpu-dev-server",
    }


@pytest.mark.parametrize(
    "headers",
    [
        {"accept": "application/json"},
        {"x-amz-target": "Something.Else"},
        {"transfer-encoding": "chunked"},
        {"x-http-method-override": "GET"},
    ],
    ids=str,
)
def test_a_signed_header_that_nobody_needs_is_refused(headers: dict[str, str]) -> None:
    assert code_of(make(headers=headers)) == "sts_malformed"


@pytest.mark.parametrize("server", ["other.example.org", "gpu-dev.example.org.evil.example", "", "localhost"])
def test_a_login_for_another_server_is_refused(server: str) -> None:
    assert code_of(make(server=server)) == "sts_other_server"


def test_the_name_of_the_server_is_the_same_in_any_letter_case() -> None:
    check(make(server="GPU-Dev.Example.Org"))


def test_the_server_must_be_under_the_signature() -> None:
    assert code_of(make(server=None, unsigned={"x-gpu-dev-server": "gpu-dev.example.org"})) == (
        "sts_header_unsigned"
    )


@pytest.mark.parametrize("minutes", [-5, 0, 5])
def test_five_minutes_are_allowed(minutes: int) -> None:
    at = NOW + timedelta(minutes=minutes)
    proof = check(make(at=at)).proof
    assert proof.expires_at >= at + timedelta(minutes=5)


@pytest.mark.parametrize("seconds", [-301, 301])
def test_more_are_not(seconds: int) -> None:
    assert code_of(make(at=NOW + timedelta(seconds=seconds))) == "sts_too_old"


@pytest.mark.parametrize(
    "name,value",
    [
        ("x-amz-date", "yesterday"),
        ("x-amz-date", "20261301T000000Z"),
        ("x-amz-date", "20260302T120000Z"),
        ("authorization", ""),
        ("authorization", "Bearer x"),
        ("x-amz-security-token", "a\r\nX-Injected: b"),
        ("x-amz-security-token", "é"),
        ("x-amz-security-token", "t" * 10_000),
        ("X-AMZ-Date", "20260301T120000Z"),
    ],
)
def test_odd_headers_are_refused(name: str, value: str) -> None:
    request = make()
    request["headers"][name] = value
    assert code_of(request) == "sts_malformed"


def test_a_missing_signed_header_is_refused() -> None:
    request = make()
    del request["headers"]["content-type"]
    assert code_of(request) == "sts_malformed"


def test_too_many_headers_are_refused() -> None:
    assert code_of(make(unsigned={f"x-{number}": "" for number in range(20)})) == "sts_malformed"


@pytest.mark.parametrize(
    "old,new",
    [("/sts/", "/s3/"), ("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"), (", Signed", ",  Signed")],
)
def test_only_a_signature_for_sts_counts(old: str, new: str) -> None:
    request = make()
    request["headers"]["authorization"] = request["headers"]["authorization"].replace(old, new, 1)
    assert code_of(request) == "sts_malformed"


def test_another_spelling_of_a_signature_is_the_same_proof() -> None:
    request = make()
    before = check(request).proof
    request["headers"]["authorization"] = request["headers"]["authorization"].replace(", ", ",")
    assert check(request).proof == before
    request["headers"]["authorization"] = request["headers"]["authorization"].upper()
    assert code_of(request) == "sts_malformed"
