"""Log in by AWS: whoever AWS says somebody is, if that account and role may come in.

Where the operator wants it, a second step asks who one is at GitHub, proved by an SSH key, and what one may
do there. The proof is wanted once, and again when it is too old; what GitHub says of the user is asked for
with every login, at most every few minutes.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from gpudev.app.identity.login import IssuedKey, KeyIssuer, LoginOrigin
from gpudev.domain.audit import AuditAction, AuditEntry
from gpudev.domain.errors import (
    IdentityUnavailable,
    Invalid,
    KeysUnavailable,
    NotAllowed,
    NotFound,
    Unauthenticated,
)
from gpudev.domain.github import CHALLENGE_LIFE, Binding, GitHubPolicy
from gpudev.domain.identity import AccessPolicy, Identity
from gpudev.domain.names import check_github_user
from gpudev.ports.clock import Clock
from gpudev.ports.identity import (
    AwsCredentials,
    Evidence,
    GitHubBindings,
    GitHubDirectory,
    GitHubProof,
    Identities,
    IdentityProvider,
    OneTimeProof,
    PublishedKeys,
    Signatures,
    StoredChallenge,
)
from gpudev.ports.users import User, Users

FRESH_FOR = timedelta(minutes=5)
"""So long a good standing is not asked for again. A bad one always is: people get it mended and come back."""

_MAX_REMEMBERED = 10_000
_CHALLENGE_BYTES = 32
_log = structlog.get_logger(__name__)


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
        stored = StoredChallenge(_hash_challenge(challenge), user.user_id, claimed, now + CHALLENGE_LIFE)
        await self.bindings.add_challenge(stored, now)
        return GivenChallenge(challenge, claimed, keys, stored.expires_at)

    async def check(self, user: User, proof: GitHubProof | None, origin: LoginOrigin) -> str:
        """The GitHub user that this user is, if that one may come in.

        A proof is kept also where the standing is not good: who it is has been shown once and for all.
        """
        now = self.clock.now()
        if proof is not None:
            await self._bind(user, proof, now, origin)
        binding = self.policy.check_binding(
            user.username, await self.bindings.find_binding(user.user_id), now
        )
        await self.standing.check(binding.github_user)
        return binding.github_user

    async def _find_bound(self, user: User) -> str:
        binding = await self.bindings.find_binding(user.user_id)
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
        claimed = await self.bindings.take_challenge(_hash_challenge(proof.challenge), user.user_id, now)
        if claimed is None:
            raise Unauthenticated("github_challenge_unknown", code="github_challenge_unknown")
        keys = await self._list_keys(claimed)
        self.signatures.check(proof.signature, proof.challenge.encode(), keys)
        entry = AuditEntry(user.username, AuditAction.GITHUB_BOUND, claimed, origin.address)
        if not await self.bindings.bind(user.user_id, Binding(claimed, now), entry):
            raise NotAllowed(
                "github_user_taken", github_user=claimed, username=user.username, code="github_user_taken"
            )


def _hash_challenge(challenge: str) -> bytes:
    return hashlib.sha256(challenge.encode()).digest()


class AllowedAccounts:
    """The AWS accounts that may log in: those that were named, else the server's own, asked for once."""

    def __init__(self, named: frozenset[str], provider: IdentityProvider) -> None:
        self._known = named
        self._provider = provider
        self._is_known = bool(named)
        self._asking = asyncio.Lock()

    async def get(self) -> frozenset[str]:
        async with self._asking:
            if not self._is_known:
                own = await self._provider.find_own_account()
                self._known = frozenset({own} if own else ())
                self._is_known = True
        if not self._known:
            raise NotFound("aws_login_without_accounts", code="aws_login_off")
        return self._known


@dataclass(frozen=True, slots=True)
class AwsLoginRules:
    role: str
    accepts_credentials: bool = False
    """Whether a caller may send the credentials themselves, as clients of version 0.3 do."""
    reserved_names: frozenset[str] = frozenset()
    """Usernames that belong to others who have no AWS identity, whether they have come already or not."""


@dataclass(frozen=True, slots=True)
class AwsKey:
    key: IssuedKey
    arn: str
    github_user: str | None = None
    """Who one is at GitHub, where that is looked at."""


@dataclass(frozen=True, slots=True)
class AwsLogin:
    provider: IdentityProvider
    accounts: AllowedAccounts
    rules: AwsLoginRules
    users: Users
    identities: Identities
    issuer: KeyIssuer
    clock: Clock
    github: GitHubCheck | None = None
    """None where nobody asks who somebody is at GitHub."""

    async def log_in(
        self, evidence: Evidence, origin: LoginOrigin, proof: GitHubProof | None = None
    ) -> AwsKey:
        identity, user = await self._identify(evidence)
        github_user = await self.github.check(user, proof, origin) if self.github else None
        key = await self.issuer.issue(user, origin)
        _log.info("aws_login", username=user.username, arn=identity.arn, github_user=github_user)
        return AwsKey(key, identity.arn, github_user)

    async def give_challenge(self, evidence: Evidence, github_user: str) -> GivenChallenge:
        """Something to sign, for who AWS says they are and claims to be this GitHub user."""
        if self.github is None:
            raise NotFound("github_check_off", code="github_check_off")
        _identity, user = await self._identify(evidence)
        return await self.github.give_challenge(user, github_user)

    async def _identify(self, evidence: Evidence) -> tuple[Identity, User]:
        policy = AccessPolicy(await self.accounts.get(), self.rules.role)
        if isinstance(evidence, AwsCredentials) and not self.rules.accepts_credentials:
            raise NotAllowed("credentials_not_taken", code="credentials_not_taken")
        finding = await self.provider.identify(evidence, self.clock.now())
        if finding.proof is not None:
            await self._spend(finding.proof)
        policy.check(finding.identity)
        return finding.identity, await self._admit(finding.identity)

    async def _spend(self, proof: OneTimeProof) -> None:
        if not await self.users.use_proof(proof.fingerprint, self.clock.now(), proof.expires_at):
            raise Unauthenticated("signed_request_replayed", code="sts_replayed")

    async def _admit(self, identity: Identity) -> User:
        is_reserved = identity.username in self.rules.reserved_names
        user = None if is_reserved else await self.identities.admit(identity)
        if user is None:
            raise NotAllowed(
                "username_taken", username=identity.username, arn=identity.arn, code="username_taken"
            )
        if not user.is_active:
            raise NotAllowed("user_disabled", username=user.username, code="user_disabled")
        return user
