"""GitHub as a second witness of who a caller is: proof by an SSH key, and what a user may do there.

It stands beside `ports.identity`: that one says who somebody is, this one what else must be true of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from gpudev.domain.audit import AuditEntry
from gpudev.domain.github import Binding, GitHubPolicy, Standing
from gpudev.domain.names import UserId


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

    async def find(self, user_id: UserId) -> Binding | None: ...

    async def bind(self, user_id: UserId, binding: Binding, audit: AuditEntry) -> bool:
        """Replaces what was bound; False, and nothing is written, if another user has that GitHub user."""
        ...
