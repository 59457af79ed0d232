"""Logging in: to a server on this machine by proof that we can read a file of its owner, elsewhere by AWS.

The file's contents never leave this process; see `wire.cluster.LocalLoginRequest` for the proof. Neither do
AWS credentials; see `wire.identity.StsRequest`.
"""

from __future__ import annotations

import hmac
import os
import time
from pathlib import Path

from gpudev.client import aws, codec
from gpudev.client.config import Target
from gpudev.client.errors import LoginFailed, Unreachable, error_of
from gpudev.client.http import Http, Request
from gpudev.wire.cluster import LocalLoginRequest, LoginResponse

NONCE_BYTES = 16


def log_in(http: Http, target: Target) -> LoginResponse:
    """By the login file where the environment has one, else by AWS."""
    if target.login_file is not None:
        proof = prove(_read_secret(target.login_file), http.authority, int(time.time()))
        return _send(http, "/v1/auth/local-login", proof)
    return _send(http, "/v1/auth/aws-login", aws.sign_login(http.host, target.aws))


def _send(http: Http, path: str, evidence: object) -> LoginResponse:
    response = http.send(Request("POST", path, codec.dumps(evidence).encode()))
    if not response.is_ok:
        raise error_of(response.status, response.body)
    return codec.loads(LoginResponse, response.body)


def prove(secret: bytes, authority: str, timestamp: int) -> LocalLoginRequest:
    nonce = os.urandom(NONCE_BYTES).hex()
    text = f"{timestamp}\n{nonce}\n{authority}"
    proof = hmac.new(secret, text.encode(), "sha256").hexdigest()
    return LocalLoginRequest(timestamp=timestamp, nonce=nonce, proof=proof)


def _read_secret(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise Unreachable(
            f"There is no login file at {path}: the server on this machine was not started, or was removed.",
            hint="Start it with: gpu-dev up",
            code="not_started",
        ) from error
    except OSError as error:
        raise LoginFailed(
            f"The login file {path} cannot be read: {error.strerror}.",
            hint="Only the user who started the server may use it.",
        ) from error
