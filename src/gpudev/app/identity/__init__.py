"""Identity: logins, API keys, users, and who a request comes from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from gpudev.app.audit_log import AuditTally
from gpudev.app.identity.authentication import Authentication, Caller, Visitor, charge_nobody
from gpudev.app.identity.aws_login import AwsKey, AwsLogin, GivenChallenge
from gpudev.app.identity.login import IssuedKey, KeyRing, LocalLogin, LoginGuard, LoginOrigin, LoginProof
from gpudev.domain.audit import AuditAction, AuditOutcome
from gpudev.domain.errors import Conflict, NotAllowed, NotFound
from gpudev.domain.names import UserId
from gpudev.ports.audit import AuditLog
from gpudev.ports.identity import AwsCredentials, Evidence, GitHubProof, Identities, SignedRequest
from gpudev.ports.users import StoredKey, User, Users, UserSummary

__all__ = [
    "AwsCredentials",
    "AwsKey",
    "Caller",
    "Evidence",
    "GitHubProof",
    "GivenChallenge",
    "IdentityUseCases",
    "IssuedKey",
    "LoginOrigin",
    "LoginProof",
    "SignedRequest",
    "User",
    "Visitor",
]


@dataclass(frozen=True, slots=True)
class IdentityUseCases:
    """A plain `def` hands over to the part that does it, so that a request is not awaited twice."""

    authentication: Authentication
    keys: KeyRing
    guard: LoginGuard
    users: Users
    identities: Identities
    audit: AuditLog
    tally: AuditTally
    local_login: LocalLogin | None
    """None where the server is not somebody's own machine."""
    aws_login: AwsLogin | None
    """None where nobody may log in by AWS."""

    def meet(
        self, api_key: str, address: str, claim: Callable[[UserId], None] = charge_nobody
    ) -> Awaitable[Visitor]:
        """Whoever comes with a key that may be a good one."""
        return self.authentication.meet(api_key, address, claim)

    def authenticate(self, visitor: Visitor) -> Awaitable[Caller]:
        return self.authentication.authenticate(visitor)

    async def log_in_locally(self, proof: LoginProof, address: str) -> IssuedKey:
        """By proving that one can read the login file of the server's owner."""
        if self.local_login is None:
            raise NotFound("local_login_off")
        origin = LoginOrigin("local", address)
        async with self.guard.watch(origin):
            return await self.local_login.log_in(proof, origin)

    async def log_in_by_aws(self, evidence: Evidence, proof: GitHubProof | None, address: str) -> AwsKey:
        login, origin = self._get_aws_login(), LoginOrigin("aws", address)
        async with self.guard.watch(origin):
            return await login.log_in(evidence, origin, proof)

    async def give_github_challenge(
        self, evidence: Evidence, github_user: str, address: str
    ) -> GivenChallenge:
        """Something to sign with an SSH key that one has published at GitHub, for the next login by AWS."""
        login = self._get_aws_login()
        async with self.guard.watch(LoginOrigin("github", address)):
            return await login.give_challenge(evidence, github_user)

    @property
    def key_hours(self) -> int:
        """How long the first key of a login is valid."""
        return self.keys.life.hours

    def list_keys(self, caller: Caller) -> Awaitable[tuple[StoredKey, ...]]:
        return self.keys.list_own(caller)

    def rotate_key(self, caller: Caller) -> Awaitable[IssuedKey]:
        return self.keys.rotate(caller)

    def revoke_key(self, caller: Caller, prefix: str) -> Awaitable[None]:
        return self.keys.revoke(caller, prefix)

    def find_arn(self, caller: Caller) -> Awaitable[str | None]:
        """Who the caller is at AWS; None: nobody, or nobody knows."""
        return self.identities.find_arn(caller.user_id)

    async def check_admin(self, caller: Caller, path: str) -> None:
        """Refuse a caller who is no admin, and write it to the audit log."""
        if not caller.is_admin:
            await self.tally.write(caller.entry(AuditAction.ADMIN, path, outcome=AuditOutcome.REFUSED))
            raise NotAllowed("not_an_admin", username=caller.username)

    async def list_users(self, caller: Caller) -> tuple[UserSummary, ...]:
        """For admins. Written to the audit log first, so that nothing is seen that was not noted."""
        await self.audit.write(caller.entry(AuditAction.LIST_USERS))
        return await self.users.list_all()

    async def set_active(self, caller: Caller, username: str, *, is_active: bool) -> User:
        """Disable or enable a user, for admins; written together with its entry in the audit log."""
        if not username.isprintable():
            raise NotFound("no_such_user")
        if username == caller.username and not is_active:
            raise Conflict("cannot_disable_self", code="cannot_disable_self")
        action = AuditAction.ENABLE_USER if is_active else AuditAction.DISABLE_USER
        return await self.users.set_active(
            username, is_active=is_active, audit=caller.entry(action, username)
        )

    def _get_aws_login(self) -> AwsLogin:
        if self.aws_login is None:
            raise NotFound("aws_login_on_one_machine", code="aws_login_off")
        return self.aws_login
