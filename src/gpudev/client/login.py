"""Logging in to a server on this machine: proof that we can read a file of its owner.

The file's contents never leave this process; see `wire.cluster.LocalLoginRequest` for the proof.
"""

from __future__ import annotations

import hmac
import os
import time
from pathlib import Path

from gpudev.client import codec
from gpudev.client.config import Target
from gpudev.client.errors import LoginFailed, Unreachable, error_of
from gpudev.client.http import Http, Request
from gpudev.wire.cluster import LocalLoginRequest, LoginResponse

NONCE_BYTES = 16


def log_in(http: Http, target: Target) -> LoginResponse:
    if target.login_file is None:
        raise LoginFailed(
            f"There is no way known to log in to {target.api_url}.",
            hint="A server on this machine writes its login into the configuration: gpu-dev up",
            code="no_login",
        )
    proof = prove(_read_secret(target.login_file), http.authority, int(time.time()))
    response = http.send(Request("POST", "/v1/auth/local-login", codec.dumps(proof).encode()))
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
