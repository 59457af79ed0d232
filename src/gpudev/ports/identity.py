"""Who a caller is: evidence that somebody outside vouches for, and the users that identities belong to.

A login hands over evidence, an `IdentityProvider` says whose it is, and `Identities` knows which user that
is. Another kind of login is another kind of evidence and a provider that understands it; what follows from
an identity stays as it is.

GitHub is asked what else is true of a caller: which SSH keys a GitHub user has published, and whether the
caller has proved to be that user.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from gpudev.domain.audit import AuditEntry
from gpudev.domain.github import Binding, GitHubPolicy, Standing
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


@dataclass(frozen=True, slots=True)
class GitHubProof:
    """A challenge that this server gave, and a signature of it."""

    challenge: str = field(repr=False)
    signature: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class StoredChallenge:
    """A challenge as it is kept: its hash, and whom it was given to for whom."""

    challenge_hash: bytes
    user_id: UserId
    github_user: str
    expires_at: datetime


class Signatures(Protocol):
    def check(self, signature: str, message: bytes, public_keys: tuple[str, ...]) -> None:
        """Whether one of these keys signed this message for this server.

        `Unauthenticated` if not, with a code for each way of being wrong: not a signature at all, made for
        another server or purpose, by a key that is not among them, of another message. The signature comes
        from a stranger: whatever it says, nothing else is raised.
        """
        ...


class GitHubDirectory(Protocol):
    async def read_standing(self, github_user: str, policy: GitHubPolicy) -> Standing:
        """What this user is in what the policy names; nothing is asked about the rest.

        `IdentityUnavailable` whenever there is no proper answer: that says nothing about the user.
        """
        ...


class GitHubBindings(Protocol):
    """Challenges and bindings. Raises `StoreUnavailable` when the database does not answer."""

    async def add_challenge(self, challenge: StoredChallenge, now: datetime) -> None:
        """Those that have expired are forgotten."""
        ...

    async def take_challenge(self, challenge_hash: bytes, user_id: UserId, now: datetime) -> str | None:
        """Spend a challenge of this user: the GitHub user that it was given for.

        None if it is unknown, expired, spent, or somebody else's. Among many who ask at once, from however
        many replicas, one gets it.
        """
        ...

    async def find_binding(self, user_id: UserId) -> Binding | None:
        """The GitHub user that this user has proved to be; None: none."""
        ...

    async def bind(self, user_id: UserId, binding: Binding, audit: AuditEntry) -> bool:
        """Replaces what was bound; False, and nothing is written, if another user has that GitHub user."""
        ...


class PublishedKeys(Protocol):
    """Where people publish their keys."""

    async def list_keys(self, github_user: str) -> tuple[str, ...]:
        """The keys of a user that a dev server takes, as lines; none for a user who is not there.

        `KeysUnavailable` when there is no proper answer within a few seconds.
        """
        ...


@dataclass(frozen=True, slots=True)
class StoredKeys:
    keys: tuple[str, ...]
    fetched_at: datetime


class KnownKeys(Protocol):
    """What was read last, for every replica and for the time in which nothing can be read."""

    async def find_keys(self, github_user: str) -> StoredKeys | None:
        """The keys as they were read last; None: they never were."""
        ...

    async def keep_keys(self, github_user: str, stored: StoredKeys) -> None:
        """Replaces what was kept, unless that was read later."""
        ...
