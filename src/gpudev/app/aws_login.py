"""Log in by AWS: whoever AWS says somebody is, if that account and role may come in.

Where the operator wants it, GitHub is asked as well; see `app.github_check`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import structlog

from gpudev.app.github_check import GitHubCheck, GivenChallenge
from gpudev.app.login import IssuedKey, IssueKey, LoginOrigin
from gpudev.domain.errors import NotAllowed, NotFound, Unauthenticated
from gpudev.domain.identity import AccessPolicy, Identity
from gpudev.ports.clock import Clock
from gpudev.ports.github import GitHubProof
from gpudev.ports.identity import AwsCredentials, Evidence, Identities, IdentityProvider, OneTimeProof
from gpudev.ports.users import User, Users

_log = structlog.get_logger(__name__)


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
    issue_key: IssueKey
    clock: Clock
    github: GitHubCheck | None = None
    """None where nobody asks who somebody is at GitHub."""

    async def __call__(
        self, evidence: Evidence, origin: LoginOrigin, proof: GitHubProof | None = None
    ) -> AwsKey:
        identity, user = await self._identify(evidence)
        github_user = await self.github(user, proof, origin) if self.github else None
        key = await self.issue_key(user, origin)
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
