"""Login: to a server on this machine by proof that we can read a file of its owner, elsewhere by AWS.

The file's contents never leave this process; see `wire.cluster.LocalLoginRequest` for the proof. Neither do
AWS credentials: a request that asks STS who we are is signed here and sent by the server. The signature
covers the host name of the server that we were configured to log in to, so that a server which gets it cannot
use it to log in anywhere else. Some servers want to know as well who one is at GitHub; see `client.ssh_keys`.

botocore is imported only here and only when needed: it takes longer to load than all else together.
"""

from __future__ import annotations

import hmac
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gpudev.client import codec
from gpudev.client.config import AwsPlace, Surroundings, Target
from gpudev.client.errors import ClientError, LoginFailed, NotAllowed, Unreachable, error_of
from gpudev.client.http import Http, Request
from gpudev.wire.cluster import LocalLoginRequest, LoginResponse
from gpudev.wire.identity import GitHubChallenge, GitHubChallengeRequest, SignedLogin, StsRequest

if TYPE_CHECKING:
    from botocore.credentials import Credentials


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
        return sign_login(http.host, target.aws)
    except ClientError:
        http.send(Request("GET", "/health"))
        raise


def _log_in_with_github(http: Http, target: Target, surroundings: Surroundings) -> LoginResponse:
    """Each of the two requests is signed for AWS anew: a signed request is good for once."""
    # Late: it runs programs, and what that needs takes a while to load.
    from gpudev.client import ssh_keys  # noqa: PLC0415 - see above

    asking = sign_login(http.host, target.aws)
    wanted = GitHubChallengeRequest(sts_request=asking.sts_request, github_user=target.github_user)
    challenge = _send(GitHubChallenge, http, "/v1/auth/github-challenge", wanted)
    proof = ssh_keys.sign_challenge(challenge, http.host, surroundings)
    login = replace(sign_login(http.host, target.aws), github_proof=proof)
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


PROFILE = "gpu-dev"
ACTION = "Action=GetCallerIdentity&Version=2011-06-15"
CONTENT_TYPE = "application/x-www-form-urlencoded; charset=utf-8"


def sign_login(server: str, place: AwsPlace) -> SignedLogin:
    """Proof of who we are, for the server of this host name alone and for once."""
    try:
        from botocore.auth import SigV4Auth  # noqa: PLC0415 - see above
        from botocore.awsrequest import AWSRequest  # noqa: PLC0415 - see above
    except ModuleNotFoundError as error:
        raise LoginFailed(
            f"To log in to {server} by AWS, botocore is needed, and it is not installed.",
            hint="Install it with: pip install 'gpu-dev[aws]'. For a server on this machine: gpu-dev up",
            code="aws_not_installed",
        ) from error
    headers = {
        "Content-Type": CONTENT_TYPE,
        "X-GPU-Dev-Server": server,
        # The time is in whole seconds: without this, two logins of one second would be the same one.
        "X-GPU-Dev-Nonce": os.urandom(NONCE_BYTES).hex(),
    }
    url = find_sts(place)
    request = AWSRequest(method="POST", url=url, data=ACTION, headers=headers)
    SigV4Auth(_find_credentials(server), "sts", place.region).add_auth(request)
    return SignedLogin(sts_request=StsRequest(url=url, headers=dict(request.headers.items()), body=ACTION))


def find_sts(place: AwsPlace) -> str:
    if place.sts_endpoint:
        return f"{place.sts_endpoint.rstrip('/')}/"
    suffix = "amazonaws.com.cn" if place.region.startswith("cn-") else "amazonaws.com"
    return f"https://sts.{place.region}.{suffix}/"


def _find_credentials(server: str) -> Credentials:
    """Those of the profile `gpu-dev` if there is one, else what the usual chain of AWS finds."""
    import botocore.session  # noqa: PLC0415 - see above
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - see above

    has_profile = PROFILE in botocore.session.Session().available_profiles
    try:
        credentials = botocore.session.Session(profile=PROFILE if has_profile else None).get_credentials()
        if credentials is not None:
            credentials.get_frozen_credentials()  # an expired login shows here
            return credentials
    except BotoCoreError as error:
        raise LoginFailed(
            f"The AWS credentials cannot be used: {error}.",
            hint=f"Log in to AWS with: aws sso login{f' --profile {PROFILE}' if has_profile else ''}",
            code="no_aws_credentials",
        ) from error
    raise LoginFailed(
        f"To log in to {server}, AWS credentials are needed, and there are none.",
        hint=f"Set up the profile {PROFILE} with: aws configure sso --profile {PROFILE}",
        code="no_aws_credentials",
    )
