"""The login by AWS, as the settings want it."""

from __future__ import annotations

from gpudev.app.identity.aws_login import AllowedAccounts, AwsLogin, AwsLoginRules
from gpudev.app.identity.login import LocalLogin
from gpudev.bootstrap.access import make_issue_key
from gpudev.bootstrap.foundation import Stores
from gpudev.bootstrap.github_check import make_github_check
from gpudev.ports.clock import Clock
from gpudev.settings import Settings

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
        identities=stores.identities,
        issue_key=make_issue_key(settings, stores, clock),
        clock=clock,
        github=make_github_check(settings.github, stores, clock, names),
    )


def _public_names(settings: Settings) -> frozenset[str]:
    """A login signed for "localhost" is good for a server of this machine only, never for a public one."""
    if settings.aws.names:
        return settings.aws.names
    return _LOOPBACK if settings.api.host in _LOOPBACK else frozenset()
