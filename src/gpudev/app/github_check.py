"""The optional second step of a login: who one is at GitHub, proved by an SSH key, and what one may do there.

The proof is wanted once, and again when it is too old; what GitHub says of the user is asked for with every
login, at most every few minutes.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gpudev.app.login import LoginOrigin
from gpudev.domain.audit import AuditAction, AuditEntry
from gpudev.domain.errors import IdentityUnavailable, Invalid, KeysUnavailable, NotAllowed, Unauthenticated
from gpudev.domain.github import CHALLENGE_LIFE, Binding, GitHubPolicy
from gpudev.domain.names import check_github_user
from gpudev.ports.clock import Clock
from gpudev.ports.github import GitHubBindings, GitHubDirectory, GitHubProof, Signatures, StoredChallenge
from gpudev.ports.keys import PublishedKeys
from gpudev.ports.users import User

FRESH_FOR = timedelta(minutes=5)
"""So long a good standing is not asked for again. A bad one always is: people get it mended and come back."""

_MAX_REMEMBERED = 10_000
_CHALLENGE_BYTES = 32


@dataclass(frozen=True, slots=True)
class GivenChallenge:
    """A challenge in clear: it is told once and never stored."""

    challenge: str = field(repr=False)
    github_user: str
    public_keys: tuple[str, ...]
    """One of these must sign it."""
    expires_at: datetime


class GoodStanding:
    """Whether GitHub users are what the policy wants, remembered for a moment in this process."""

    def __init__(self, directory: GitHubDirectory, policy: GitHubPolicy, clock: Clock) -> None:
        self._directory = directory
        self._policy = policy
        self._clock = clock
        self._good_until: OrderedDict[str, datetime] = OrderedDict()

    async def check(self, github_user: str) -> None:
        now = self._clock.now()
        if now < self._good_until.get(github_user, now):
            return
        standing = await self._directory.read_standing(github_user, self._policy)
        self._policy.check_standing(github_user, standing)
        self._good_until[github_user] = now + FRESH_FOR
        self._good_until.move_to_end(github_user)
        if len(self._good_until) > _MAX_REMEMBERED:
            self._good_until.popitem(last=False)


@dataclass(frozen=True, slots=True)
class GitHubCheck:
    policy: GitHubPolicy
    bindings: GitHubBindings
    published: PublishedKeys
    signatures: Signatures
    standing: GoodStanding
    clock: Clock

    async def give_challenge(self, user: User, github_user: str) -> GivenChallenge:
        """Something to sign for who claims to be this GitHub user; without a name, for the one of before."""
        claimed = check_github_user(github_user) if github_user else await self._find_bound(user)
        keys = await self._list_keys(claimed)
        challenge = secrets.token_urlsafe(_CHALLENGE_BYTES)
        now = self.clock.now()
        stored = StoredChallenge(_hash(challenge), user.user_id, claimed, now + CHALLENGE_LIFE)
        await self.bindings.add_challenge(stored, now)
        return GivenChallenge(challenge, claimed, keys, stored.expires_at)

    async def __call__(self, user: User, proof: GitHubProof | None, origin: LoginOrigin) -> str:
        """The GitHub user that this user is, if that one may come in.

        A proof is kept also where the standing is not good: who it is has been shown once and for all.
        """
        now = self.clock.now()
        if proof is not None:
            await self._bind(user, proof, now, origin)
        binding = self.policy.check_binding(user.username, await self.bindings.find(user.user_id), now)
        await self.standing.check(binding.github_user)
        return binding.github_user

    async def _find_bound(self, user: User) -> str:
        binding = await self.bindings.find(user.user_id)
        if binding is None:
            raise Invalid("github_user_needed", username=user.username, code="github_user_needed")
        return binding.github_user

    async def _list_keys(self, github_user: str) -> tuple[str, ...]:
        """As they are now: a key that was taken back must not open anything."""
        try:
            keys = await self.published.list_keys(github_user)
        except KeysUnavailable as error:
            raise IdentityUnavailable("github_keys_not_read", cause=error.fact) from error
        if not keys:
            raise Invalid("github_user_without_keys", github_user=github_user, code="github_no_keys")
        return keys

    async def _bind(self, user: User, proof: GitHubProof, now: datetime, origin: LoginOrigin) -> None:
        """The challenge is spent before the signature is looked at: each can be tried once."""
        claimed = await self.bindings.take_challenge(_hash(proof.challenge), user.user_id, now)
        if claimed is None:
            raise Unauthenticated("github_challenge_unknown", code="github_challenge_unknown")
        keys = await self._list_keys(claimed)
        self.signatures.check(proof.signature, proof.challenge.encode(), keys)
        entry = AuditEntry(user.username, AuditAction.GITHUB_BOUND, claimed, origin.address)
        if not await self.bindings.bind(user.user_id, Binding(claimed, now), entry):
            raise NotAllowed(
                "github_user_taken", github_user=claimed, username=user.username, code="github_user_taken"
            )


def _hash(challenge: str) -> bytes:
    return hashlib.sha256(challenge.encode()).digest()
