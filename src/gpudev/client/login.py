"""Logging in: to a server on this machine by proof that we can read a file of its owner, elsewhere by AWS.

The file's contents never leave this process; see `wire.cluster.LocalLoginRequest` for the proof. Neither do
AWS credentials; see `wire.identity.StsRequest`. Some servers want to know as well who one is at GitHub; see
`client.github`.
"""

from __future__ import annotations

import hmac
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from gpudev.client import aws, codec
from gpudev.client.config import Surroundings, Target
from gpudev.client.errors import ClientError, LoginFailed, NotAllowed, Unreachable, error_of
from gpudev.client.http import Http, Request
from gpudev.wire.cluster import LocalLoginRequest, LoginResponse
from gpudev.wire.identity import GitHubChallenge, GitHubChallengeRequest, SignedLogin

T = TypeVar("T")

NONCE_BYTES = 16
AWS_LOGIN = "/v1/auth/aws-login"
WANTS_GITHUB = frozenset({"github_proof_needed", "github_proof_expired"})


def log_in(http: Http, target: Target, surroundings: Surroundings) -> LoginResponse:
    """By the login file where the environment has one, else by AWS."""
    if target.login_file is not None:
        proof = prove(_read_secret(target.login_file), http.authority, int(time.time()))
        return _send(LoginResponse, http, "/v1/auth/local-login", proof)
    signed = _sign(http, target)
    try:
        return _send(LoginResponse, http, AWS_LOGIN, signed)
    except NotAllowed as error:
        if error.code not in WANTS_GITHUB:
            raise
    return _log_in_with_github(http, target, surroundings)


def _sign(http: Http, target: Target) -> SignedLogin:
    """Without credentials, the first thing to know is whether there is a server to log in to at all."""
    try:
        return aws.sign_login(http.host, target.aws)
    except ClientError:
        http.send(Request("GET", "/health"))
        raise


def _log_in_with_github(http: Http, target: Target, surroundings: Surroundings) -> LoginResponse:
    """Each of the two requests is signed for AWS anew: a signed request is good for once."""
    # Late: it runs programs, and what that needs takes a while to load.
    from gpudev.client import github  # noqa: PLC0415 - see above

    asking = aws.sign_login(http.host, target.aws)
    wanted = GitHubChallengeRequest(sts_request=asking.sts_request, github_user=target.github_user)
    challenge = _send(GitHubChallenge, http, "/v1/auth/github-challenge", wanted)
    proof = github.sign_challenge(challenge, http.host, surroundings)
    login = replace(aws.sign_login(http.host, target.aws), github_proof=proof)
    return _send(LoginResponse, http, AWS_LOGIN, login)


def _send(kind: type[T], http: Http, path: str, evidence: object) -> T:
    response = http.send(Request("POST", path, codec.dumps(evidence).encode()))
    if not response.is_ok:
        raise error_of(response.status, response.body, response.retry_after)
    return codec.loads(kind, response.body)


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
