"""Who a caller is: evidence that somebody outside vouches for, and the users that identities belong to.

A login hands over evidence, an `IdentityProvider` says whose it is, and `Identities` knows which user that
is. Another kind of login is another kind of evidence and a provider that understands it; what follows from
an identity stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from gpudev.domain.identity import Identity
from gpudev.domain.names import UserId
from gpudev.ports.users import User


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A question "who am I?" to AWS, signed by the caller for us to send. It holds no secret, only proof."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class AwsCredentials:
    """Credentials themselves. They are used for one question and forgotten: never logged, never stored."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


Evidence = SignedRequest | AwsCredentials


@dataclass(frozen=True, slots=True)
class OneTimeProof:
    """Evidence that counts once: what to remember it by, and until when it could be shown again."""

    fingerprint: bytes
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Finding:
    """Whose evidence it is. With a `proof`, it may be believed only after that proof was spent."""

    identity: Identity
    proof: OneTimeProof | None = None


class IdentityProvider(Protocol):
    async def identify(self, evidence: Evidence, now: datetime) -> Finding:
        """Whose evidence this is.

        Evidence that proves nothing is `Unauthenticated`, with a code for each way of being wrong: not made
        for this server, too old, altered, not what was asked for. A provider that does not answer is
        `IdentityUnavailable`, and says nothing about the evidence.

        Evidence comes from strangers. Whatever it says, nobody but the provider's own known servers is ever
        spoken to, and what they are asked is nothing but who the caller is.
        """
        ...

    async def find_own_account(self) -> str | None:
        """The account that this server itself runs in; None if it has no identity of its own."""
        ...


class Identities(Protocol):
    """Which user an identity is. Raises `StoreUnavailable` when the database does not answer."""

    async def admit(self, identity: Identity) -> User | None:
        """The user of this identity, made if new. A disabled user stays disabled.

        None if its username is another's: of another identity, or of somebody who has none. Two identities
        are never one user, however often and from how many replicas they ask at once.
        """
        ...

    async def find_arn(self, user_id: UserId) -> str | None:
        """The ARN that this user last came with; None for a user without an identity."""
        ...
