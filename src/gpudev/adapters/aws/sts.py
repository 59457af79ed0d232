"""One question to STS, "who signed this?", over plain HTTPS. Follows no redirect, reads no long answer.

Blocking: for a thread.
"""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import botocore.parsers
import botocore.session
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials, ReadOnlyCredentials

from gpudev.adapters.aws.signed_request import ACTION, CONTENT_TYPE
from gpudev.domain.errors import IdentityUnavailable, Unauthenticated
from gpudev.texts.fact import fact

TIMEOUT_SECONDS = 5.0
MAX_ANSWER = 65_536
_SERVER_ERROR = 500
_OK = 200
_NOT_THE_CALLERS_FAULT = ("Throttl", "RequestLimitExceeded", "ServiceUnavailable", "InternalFailure")


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
