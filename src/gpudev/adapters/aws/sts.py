"""Requests to STS that ask who signed them: which ones we send, and how.

STS checks the signature; everything that STS does not check is checked here, before a byte is sent. What is
sent is made from what was checked: the address is one of ours, the body is a constant, and the headers are
the signed ones, each of a short list. A header that is not signed is dropped. Plain HTTPS: no redirect is
followed, no long answer is read. Blocking: for a thread.
"""

from __future__ import annotations

import hashlib
import http.client
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import botocore.parsers
import botocore.session
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials, ReadOnlyCredentials

from gpudev.domain.errors import IdentityUnavailable, Unauthenticated
from gpudev.ports.identity import OneTimeProof, SignedRequest
from gpudev.texts.fact import fact

ACTION = "Action=GetCallerIdentity&Version=2011-06-15"
CONTENT_TYPE = "application/x-www-form-urlencoded; charset=utf-8"
SERVER_HEADER = "x-gpu-dev-server"
LIFE = timedelta(minutes=5)

MAX_HEADERS = 16
MAX_HEADER_LENGTH = 8192
"""A session token of AWS is up to a few thousand characters long."""

MUST_BE_SIGNED = frozenset({"host", "x-amz-date", SERVER_HEADER})
MAY_BE_SIGNED = MUST_BE_SIGNED | {"content-type", "x-amz-security-token", "x-gpu-dev-nonce"}

# One label between `sts` and `amazonaws`, and only of the form of a region: others could be a customer's.
_AWS_URL = re.compile(
    r"https://sts(\.(?!cn-)[a-z]{2}(-[a-z]+){1,2}-[0-9]{1,2})?\.amazonaws\.com/?"
    r"|https://sts\.cn-[a-z]+-[0-9]{1,2}\.amazonaws\.com\.cn/?"
)
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=[A-Za-z0-9_]{16,128}/(?P<day>[0-9]{8})/[a-z0-9-]{1,32}/sts/aws4_request, ?"
    r"SignedHeaders=(?P<signed>[a-z0-9;-]{1,512}), ?Signature=(?P<signature>[0-9a-f]{64})"
)
_TIME = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_PRINTABLE = re.compile(r"[\x20-\x7e]*")
TIMEOUT_SECONDS = 5.0
MAX_ANSWER = 65_536
_SERVER_ERROR = 500
_OK = 200
_NOT_THE_CALLERS_FAULT = ("Throttl", "RequestLimitExceeded", "ServiceUnavailable", "InternalFailure")


@dataclass(frozen=True, slots=True)
class SigningRules:
    servers: frozenset[str]
    """The host names that this server is known by, in lower case."""
    endpoint: str = ""
    """The one STS to speak to, instead of those of AWS."""


@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """A request that may be sent: where to, and its headers. The body is always `ACTION`."""

    origin: str
    headers: Mapping[str, str]
    proof: OneTimeProof


def check_signed_request(request: SignedRequest, rules: SigningRules, now: datetime) -> CheckedRequest:
    """Raises `Unauthenticated`, with a code of its own for each thing that may be wrong."""
    origin = _check_url(request.url, rules)
    if request.body != ACTION:
        raise Unauthenticated("sts_other_action", code="sts_wrong_action")
    headers = _check_headers(request.headers)
    signature = _AUTHORIZATION.fullmatch(headers.get("authorization", ""))
    if signature is None:
        raise Unauthenticated("sts_unsigned", code="sts_malformed")
    signed = _check_signed_names(frozenset(signature["signed"].split(";")), headers)
    _check_host(headers, origin)
    _check_server(headers[SERVER_HEADER], rules)
    signed_at = _check_time(headers["x-amz-date"], signature["day"], now)
    sent = {name: headers[name] for name in (signed - {"host"}) | {"authorization"}}
    fingerprint = hashlib.sha256(signature["signature"].encode()).digest()
    # It may be dated ahead by as much as it may be old, and clocks of replicas differ.
    proof = OneTimeProof(fingerprint, signed_at + 2 * LIFE)
    return CheckedRequest(origin, {"content-type": CONTENT_TYPE, **sent}, proof)


def _check_url(url: str, rules: SigningRules) -> str:
    """Where to send it: `scheme://host`, without anything after it."""
    origin = url.removesuffix("/")
    is_known = origin == rules.endpoint if rules.endpoint else _AWS_URL.fullmatch(url)
    if not is_known:
        raise Unauthenticated("sts_address_unknown", code="sts_wrong_host", endpoint=rules.endpoint)
    return origin


def _check_headers(given: Mapping[str, str]) -> dict[str, str]:
    headers = {name.lower(): value for name, value in given.items()}
    is_plain = all(
        len(value) <= MAX_HEADER_LENGTH and _PRINTABLE.fullmatch(value) for value in headers.values()
    )
    if not is_plain or len(headers) != len(given) or len(headers) > MAX_HEADERS:
        raise Unauthenticated("sts_headers_odd", code="sts_malformed")
    return headers


def _check_signed_names(signed: frozenset[str], headers: Mapping[str, str]) -> frozenset[str]:
    missing = MUST_BE_SIGNED - signed
    if missing:
        raise Unauthenticated("sts_headers_unsigned", code="sts_header_unsigned", headers=sorted(missing))
    extra = signed - MAY_BE_SIGNED
    if extra:
        raise Unauthenticated("sts_header_extra", code="sts_malformed", header=min(extra))
    absent = signed - {"host"} - set(headers)
    if absent:
        raise Unauthenticated("sts_header_missing", code="sts_malformed", header=min(absent))
    return signed


def _check_host(headers: Mapping[str, str], origin: str) -> None:
    """The host is sent as in the address. One that says otherwise was meant to mislead somebody."""
    host = origin.partition("://")[2]
    if headers.get("host", host) != host:
        raise Unauthenticated("sts_host_differs", code="sts_wrong_host")


def _check_server(server: str, rules: SigningRules) -> None:
    if server.lower() not in rules.servers:
        raise Unauthenticated("sts_other_server", code="sts_other_server", server=server[:100])


def _check_time(time: str, day: str, now: datetime) -> datetime:
    try:
        signed_at = datetime.strptime(time, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        signed_at = None
    if signed_at is None or not _TIME.fullmatch(time) or not time.startswith(day):
        raise Unauthenticated("sts_time_unreadable", code="sts_malformed")
    if abs(now - signed_at) > LIFE:
        raise Unauthenticated("sts_too_old", code="sts_too_old", life=LIFE)
    return signed_at


@dataclass(frozen=True, slots=True)
class StsAnswer:
    status: int
    body: bytes


def ask(origin: str, headers: Mapping[str, str], refused_as: str = "sts_refused") -> str:
    """The ARN of who signed. `Unauthenticated` with this code if STS does not accept it."""
    answer = _send(origin, headers)
    parsed = _parse(answer)
    if answer.status == _OK and isinstance(arn := parsed.get("Arn"), str):
        return arn
    problem = str(parsed.get("Error", {}).get("Code", ""))
    if not _is_a_client_error(answer.status) or problem.startswith(_NOT_THE_CALLERS_FAULT):
        why = fact("sts_answers_with_status", status=answer.status, problem=problem)
        raise IdentityUnavailable("sts_unavailable", origin=origin, why=why)
    raise Unauthenticated("sts_refused", code=refused_as, problem=problem)


def sign(origin: str, region: str, credentials: Credentials | ReadOnlyCredentials) -> dict[str, str]:
    """The headers of the question, signed."""
    headers = {"Content-Type": CONTENT_TYPE}
    request = AWSRequest(method="POST", url=f"{origin}/", data=ACTION, headers=headers)
    SigV4Auth(credentials, "sts", region).add_auth(request)
    return dict(request.headers.items())


def _send(origin: str, headers: Mapping[str, str]) -> StsAnswer:
    address = urlsplit(origin)
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(address.netloc, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("POST", "/", ACTION.encode(), dict(headers))
        response = connection.getresponse()
        return StsAnswer(response.status, response.read(MAX_ANSWER))
    except (OSError, http.client.HTTPException) as error:
        words = str(error) or type(error).__name__
        raise IdentityUnavailable("sts_unavailable", origin=origin, why=words) from error
    finally:
        connection.close()


def _parse(answer: StsAnswer) -> dict[str, Any]:
    response = {"body": answer.body, "headers": {}, "status_code": answer.status}
    try:
        return dict(botocore.parsers.create_parser("query").parse(response, _answer_shape()))
    except (botocore.parsers.ResponseParserError, KeyError):  # not XML, or XML about something else
        return {}


@cache
def _answer_shape() -> Any:
    model = botocore.session.Session().get_service_model("sts")
    return model.operation_model("GetCallerIdentity").output_shape


def _is_a_client_error(status: int) -> bool:
    return http.client.BAD_REQUEST <= status < _SERVER_ERROR
