"""Logging in by AWS, on the wire."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StsRequest:
    """A POST of GetCallerIdentity to STS, signed on the client: no secret ever leaves it.

    `body` is exactly `Action=GetCallerIdentity&Version=2011-06-15`. The signature (AWS4-HMAC-SHA256) covers
    the headers `host`, `x-amz-date` and `x-gpu-dev-server`; besides them it may cover `content-type`,
    `x-amz-security-token` and `x-gpu-dev-nonce`, which tells two logins of one second apart.
    `X-GPU-Dev-Server` is the host name of the API address that the client was configured with, never a
    value that a server sent. It is accepted once, within 5 minutes of signing.
    """

    url: str
    """Address of STS, `https://sts.<region>.amazonaws.com/` for example."""
    headers: dict[str, str]
    """Headers of the request, the signature among them."""
    body: str
    """What is posted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedLogin:
    sts_request: StsRequest
    """The signed request, which the server passes on to STS."""
