"""AWS' signature, version 4, written from its description: a second opinion on what botocore makes."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import urlsplit

ACTION = "Action=GetCallerIdentity&Version=2011-06-15"
FORM = "application/x-www-form-urlencoded; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Key:
    access_key_id: str
    secret: str
    token: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What is signed, by default all as it should be."""

    url: str
    server: str | None = "127.0.0.1"
    body: str = ACTION
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    headers: Mapping[str, str] = field(default_factory=dict)
    unsigned: Mapping[str, str] = field(default_factory=dict)


def sign(
    question: Question, key: Key, *, region: str = "us-east-2", service: str = "sts"
) -> dict[str, object]:
    """The JSON of a signed request, as `POST /v1/auth/aws-login` takes it."""
    time = question.at.strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": urlsplit(question.url).netloc, "x-amz-date": time, "content-type": FORM}
    if key.token:
        headers["x-amz-security-token"] = key.token
    if question.server is not None:
        headers["x-gpu-dev-server"] = question.server
    headers |= question.headers
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    canonical = f"POST\n/\n\n{lines}\n{names}\n{_hash(question.body)}"
    scope = f"{time[:8]}/{region}/{service}/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{time}\n{scope}\n{_hash(canonical)}"
    signing_key = f"AWS4{key.secret}".encode()
    for part in scope.split("/"):
        signing_key = hmac.digest(signing_key, part.encode(), "sha256")
    signature = hmac.digest(signing_key, text.encode(), "sha256").hex()
    authorization = (
        f"AWS4-HMAC-SHA256 Credential={key.access_key_id}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}"
    )
    sent = {**headers, **question.unsigned, "authorization": authorization}
    return {"url": question.url, "headers": sent, "body": question.body}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
