"""Who may come in, and how often: keys, limits, admins, logins by AWS, the check at GitHub."""

from __future__ import annotations

import os
import pwd
from datetime import timedelta

from gpudev.adapters.github.directory import GitHubKeys
from gpudev.app.audit_log import AuditTally
from gpudev.app.identity.authentication import Authentication, KeyOwners, KeyScreen, KeyUses
from gpudev.app.identity.aws_login import AllowedAccounts, AwsLogin, AwsLoginRules, GitHubCheck, GoodStanding
from gpudev.app.identity.login import KeyIssuer, KeyLife, KeyRing, LocalLogin, LoginGuard
from gpudev.app.limits import Limiter
from gpudev.bootstrap.foundation import Stores, has_sole_owner
from gpudev.domain.github import GitHubPolicy, namespace_of
from gpudev.domain.identity import local_identity, read_admin
from gpudev.domain.limits import Rate
from gpudev.ports.clock import Clock
from gpudev.settings import Settings
from gpudev.settings.access import GitHubSettings

_KEY_USES_SECONDS = 30


def make_authentication(
    settings: Settings, owners: KeyOwners, key_uses: KeyUses, tally: AuditTally, clock: Clock
) -> Authentication:
    access = settings.access
    requests = Rate(access.requests_per_second, access.request_burst)
    wrong_keys = Rate(access.wrong_keys_per_minute / 60, max(1, round(access.wrong_keys_per_minute)))
    return Authentication(
        owners=owners,
        clock=clock,
        key_uses=key_uses,
        requests=Limiter(requests, clock, "api_key_asks_too_often"),
        admins=read_admins(settings),
        tally=tally,
        screen=KeyScreen(owners.users, Limiter(wrong_keys, clock, "too_many_wrong_keys")),
    )


def make_submit_limiter(settings: Settings, clock: Clock) -> Limiter:
    """Whoever submits and cancels without end takes the controllers' time from everybody else."""
    access = settings.access
    per_minute = 0.0 if has_sole_owner(settings) else access.submits_per_minute
    return Limiter(Rate(per_minute / 60, access.submit_burst), clock, "submits_too_often")


def make_key_uses(stores: Stores, clock: Clock) -> KeyUses:
    return KeyUses(stores.users, clock, _KEY_USES_SECONDS)


def make_key_ring(settings: Settings, stores: Stores, clock: Clock) -> KeyRing:
    overlap = timedelta(seconds=settings.access.key_overlap_seconds)
    return KeyRing(stores.users, clock, _key_life(settings), overlap)


def make_key_issuer(settings: Settings, stores: Stores, clock: Clock) -> KeyIssuer:
    return KeyIssuer(stores.users, clock, _key_life(settings))


def _key_life(settings: Settings) -> KeyLife:
    return KeyLife(settings.api.key_life, settings.api.login_life)


def make_login_guard(settings: Settings, stores: Stores, tally: AuditTally, clock: Clock) -> LoginGuard:
    window = timedelta(minutes=settings.access.login_failure_minutes)
    return LoginGuard(stores.users, tally, clock, settings.access.login_failures, window)


def read_admins(settings: Settings) -> frozenset[str]:
    """The owner of the machine is an admin on it: the database and all processes are theirs anyway."""
    named = frozenset(map(read_admin, settings.access.admins))
    if settings.local.state_dir is None:
        return named
    return named | {local_identity(pwd.getpwuid(os.getuid()).pw_name)}


def make_github_check(
    settings: GitHubSettings, stores: Stores, clock: Clock, servers: frozenset[str]
) -> GitHubCheck | None:
    """None unless the operator has named what people must be in; `servers` are our own public names."""
    if not settings.wants_check:
        return None
    # Late: asyncssh takes longer to load than much of the API, and most do without.
    from gpudev.adapters.github.directory import GitHubApi, RestDirectory  # noqa: PLC0415 - see above
    from gpudev.adapters.github.ssh_signatures import SshSignatures  # noqa: PLC0415 - see above

    policy = GitHubPolicy(
        organisation=settings.organisation,
        team=settings.team,
        repository=settings.repository,
        proof_life=timedelta(days=settings.proof_days),
    )
    api = GitHubApi(settings.api_url, settings.token.get_secret_value(), settings.timeout_seconds)
    return GitHubCheck(
        policy=policy,
        bindings=stores.github,
        published=GitHubKeys(settings.url, settings.timeout_seconds),
        signatures=SshSignatures(frozenset(map(namespace_of, servers))),
        standing=GoodStanding(RestDirectory(api), policy, clock),
        clock=clock,
    )


_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def make_aws_login(
    settings: Settings, stores: Stores, clock: Clock, local_login: LocalLogin | None
) -> AwsLogin | None:
    """None on somebody's own machine, unless they have named accounts that may come in."""
    aws = settings.aws
    if local_login is not None and not aws.accounts:
        return None
    # Late: botocore takes longer to load than the rest of the API, and one machine does without.
    from gpudev.adapters.aws.identity import AwsIdentityProvider, StsAccess  # noqa: PLC0415 - see above

    access = StsAccess(aws.region, aws.sts_endpoint.rstrip("/"))
    names = _public_names(settings)
    provider = AwsIdentityProvider(access, names)
    return AwsLogin(
        provider=provider,
        accounts=AllowedAccounts(aws.accounts, provider),
        rules=AwsLoginRules(
            role=aws.allowed_role,
            accepts_credentials=aws.accepts_credentials,
            reserved_names=frozenset({local_login.owner} if local_login else ()),
        ),
        users=stores.users,
        identities=stores.users,
        issuer=make_key_issuer(settings, stores, clock),
        clock=clock,
        github=make_github_check(settings.github, stores, clock, names),
    )


def _public_names(settings: Settings) -> frozenset[str]:
    """A login signed for "localhost" is good for a server of this machine only, never for a public one."""
    if settings.aws.names:
        return settings.aws.names
    return _LOOPBACK if settings.api.host in _LOOPBACK else frozenset()
