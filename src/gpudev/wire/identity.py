"""Who one is, on the wire: the login by AWS, the proof for GitHub, and API keys."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from gpudev.wire.message import message
from gpudev.wire.text import Address, Name, Text


@message
class StsRequest:
    """A POST of GetCallerIdentity to STS, signed on the client: no secret ever leaves it.

    `body` is exactly `Action=GetCallerIdentity&Version=2011-06-15`. The signature (AWS4-HMAC-SHA256) covers
    the headers `host`, `x-amz-date` and `x-gpu-dev-server`; besides them it may cover `content-type`,
    `x-amz-security-token` and `x-gpu-dev-nonce`, which tells two logins of one second apart.
    `X-GPU-Dev-Server` is the host name of the API address that the client was configured with, never a
    value that a server sent. It is accepted once, within 5 minutes of signing.
    """

    url: Address
    """Address of STS, `https://sts.<region>.amazonaws.com/` for example."""
    headers: dict[Name, Annotated[str, Text(8192)]]
    """Headers of the request, the signature among them."""
    body: Address
    """What is posted."""


@message
class GitHubProof:
    """A challenge of `POST /v1/auth/github-challenge`, signed with an SSH key of the GitHub user.

    The signature is what `ssh-keygen -Y sign -n gpu-dev@SERVER` makes of the challenge, without a newline
    after it. SERVER is the host name of the API address that the client was configured with, in lower case,
    never a value that a server sent.
    """

    challenge: Address
    """As it was given."""
    signature: Annotated[str, Text(16_384, has_lines=True)]
    """From `-----BEGIN SSH SIGNATURE-----` to `-----END SSH SIGNATURE-----`."""


@message
class SignedLogin:
    sts_request: StsRequest
    """The signed request, which the server passes on to STS."""
    github_proof: GitHubProof | None = None
    """After a 403 `github_proof_needed` or `github_proof_expired`. Ignored where GitHub is not asked."""


@message
class GitHubChallengeRequest:
    sts_request: StsRequest
    """Who asks: a signed request as for a login, another one each time."""
    github_user: Name | None = None
    """Who one claims to be at GitHub; left out, the one of before."""


@message
class GitHubChallenge:
    """Something to sign. It is good for one try, of who asked for it."""

    challenge: str
    """The text to sign."""
    github_user: str
    """Whose key must sign it."""
    public_keys: list[str]
    """The keys that this user has published at GitHub."""
    expires_at: datetime
    """Until when the signature must be here."""


@message
class RotatedKey:
    """A new key. The one that asked for it goes on working for a moment."""

    api_key: str
    """The key itself; it is told only now."""
    key_prefix: str
    """Its first 8 characters, by which it is named."""
    user_id: int
    """Number of the user."""
    username: str
    """Name of the user."""
    expires_at: datetime
    """When the key ends."""


@message
class KeyInfo:
    key_prefix: str
    """The first 8 characters, by which a key is named; the rest is not kept anywhere."""
    created_at: datetime
    """When it was given."""
    expires_at: datetime
    """When it ends, or ended."""
    is_active: bool
    """Neither expired nor revoked."""
    is_current: bool
    """The key that this request came with."""
    last_used_at: datetime | None = None
    """When it was last used, to the minute or so."""


@message
class KeyList:
    keys: list[KeyInfo]
    """The newest 100, newest first."""


@message
class RevokedKey:
    key_prefix: str
    """The key that has ended."""
    message: str
    """The same in words."""
