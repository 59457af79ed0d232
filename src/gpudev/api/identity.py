"""Routes of identity: logins, and one's own API keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import Field

from gpudev.api.context import Address, App, Caller
from gpudev.api.encoding import json_response, secret_response
from gpudev.api.errors import OF_EVERY_CALLER, OF_EVERY_ROUTE, problems
from gpudev.api.wire_schema import described
from gpudev.app.identity import (
    AwsCredentials,
    AwsKey,
    Evidence,
    GitHubProof,
    IssuedKey,
    LoginProof,
    SignedRequest,
)
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say
from gpudev.wire.cluster import LocalLoginRequest, LoginResponse
from gpudev.wire.identity import (
    GitHubChallenge,
    GitHubChallengeRequest,
    KeyInfo,
    KeyList,
    RevokedKey,
    RotatedKey,
    SignedLogin,
    StsRequest,
)
from gpudev.wire.text import Lookup, Text

login_router = APIRouter(prefix="/v1/auth", tags=["identity"], responses=OF_EVERY_ROUTE)

# They go into headers of HTTP, so nothing that could end a header may be in them.
AccessKeyId = Annotated[str, Field(min_length=16, max_length=128, pattern=r"^[A-Za-z0-9_]+$")]
SecretAccessKey = Annotated[str, Text(128), Field(min_length=40, max_length=128)]
SessionToken = Annotated[str, Field(min_length=100, max_length=2048, pattern=r"^[\x21-\x7e]+$")]
key_router = APIRouter(prefix="/v1/keys", tags=["identity"], responses=OF_EVERY_CALLER)
Prefix = Annotated[Lookup, Path(description="The first 8 characters of the key.")]


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialsLogin:
    """What clients of version 0.3 send. Ours signs on the user's machine instead: `SignedLogin`."""

    aws_access_key_id: AccessKeyId
    """Id of the key."""
    aws_secret_access_key: SecretAccessKey = field(repr=False)
    """The key itself. It is neither stored nor logged."""
    aws_session_token: SessionToken | None = field(default=None, repr=False)
    """What belongs to a key that is valid for a while only."""


@login_router.post("/local-login", response_model=LoginResponse, responses=problems(400, 401, 403, 404, 429))
async def local_login(app: App, address: Address, body: LocalLoginRequest) -> Response:
    """Log in to a server on one's own machine, by proving that one can read its login file."""
    proof = LoginProof(body.timestamp, body.nonce, body.proof)
    return _answer(await app.identity.log_in_locally(proof, address), app.identity.key_hours)


@login_router.post("/aws-login", response_model=LoginResponse, responses=problems(400, 401, 403, 404, 429))
async def aws_login(app: App, address: Address, body: SignedLogin | CredentialsLogin) -> Response:
    """Log in as whoever AWS says one is: by a signed request, or by the credentials themselves.

    Where the operator wants to know who one is at GitHub, a first login is answered 403
    `github_proof_needed`, and comes again with a `github_proof`.
    """
    given = await app.identity.log_in_by_aws(_evidence_of(body), _proof_of(body), address)
    return _answer(given.key, app.identity.key_hours, given)


@login_router.post(
    "/github-challenge", response_model=GitHubChallenge, responses=problems(400, 401, 403, 404, 429)
)
async def github_challenge(app: App, address: Address, body: GitHubChallengeRequest) -> Response:
    """Something to sign with an SSH key that one has published at GitHub, for the next `aws-login`."""
    evidence = _signed_request_of(body.sts_request)
    given = await app.identity.give_github_challenge(evidence, body.github_user or "", address)
    answer = GitHubChallenge(
        challenge=given.challenge,
        github_user=given.github_user,
        public_keys=list(given.public_keys),
        expires_at=given.expires_at,
    )
    return secret_response(answer)


def _evidence_of(body: SignedLogin | CredentialsLogin) -> Evidence:
    if isinstance(body, SignedLogin):
        return _signed_request_of(body.sts_request)
    return AwsCredentials(body.aws_access_key_id, body.aws_secret_access_key, body.aws_session_token)


def _signed_request_of(request: StsRequest) -> SignedRequest:
    return SignedRequest(request.url, request.headers, request.body)


def _proof_of(body: SignedLogin | CredentialsLogin) -> GitHubProof | None:
    given = body.github_proof if isinstance(body, SignedLogin) else None
    return GitHubProof(given.challenge, given.signature) if given else None


def _answer(key: IssuedKey, ttl_hours: int, by_aws: AwsKey | None = None) -> Response:
    answer = LoginResponse(
        api_key=key.api_key,
        key_prefix=key.prefix,
        user_id=key.user.user_id,
        username=key.user.username,
        aws_arn=by_aws.arn if by_aws else None,
        github_user=by_aws.github_user if by_aws else None,
        expires_at=key.expires_at,
        ttl_hours=ttl_hours,
    )
    return secret_response(answer)


@key_router.post("/rotate", response_model=RotatedKey, responses=problems(409))
async def rotate_key(app: App, caller: Caller) -> Response:
    """A new key in the place of the one that asks, which goes on working for a moment.

    It ends with the login at the latest. A key has one successor: who asks again with the same key is
    answered 409 `key_has_successor`, and logs in again if the first answer was lost.
    """
    key = await app.identity.rotate_key(caller)
    answer = RotatedKey(
        api_key=key.api_key,
        key_prefix=key.prefix,
        user_id=key.user.user_id,
        username=key.user.username,
        expires_at=key.expires_at,
    )
    return secret_response(answer)


@key_router.get("", response_model=KeyList)
async def list_keys(app: App, caller: Caller) -> Response:
    """One's own keys, newest first; of each only what tells it from the others."""
    keys = [
        KeyInfo(
            key_prefix=key.prefix,
            created_at=key.created_at,
            expires_at=key.expires_at,
            is_active=key.is_active,
            is_current=key.is_current,
            last_used_at=key.last_used_at,
        )
        for key in await app.identity.list_keys(caller)
    ]
    return json_response(KeyList(keys=keys))


@key_router.delete("/{prefix:key}", response_model=RevokedKey, responses=problems(404, 409))
async def revoke_key(app: App, caller: Caller, prefix: Prefix) -> Response:
    """End one of one's own keys. One that has ended already stays so."""
    await app.identity.revoke_key(caller, prefix)
    return json_response(RevokedKey(key_prefix=prefix, message=say(fact("key_revoked_now", prefix=prefix))))
