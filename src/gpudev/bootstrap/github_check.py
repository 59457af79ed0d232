"""The check of who somebody is at GitHub, as the settings want it."""

from __future__ import annotations

from datetime import timedelta

from gpudev.adapters.github.keys import GitHubKeys
from gpudev.app.identity.aws_login import GitHubCheck, GoodStanding
from gpudev.bootstrap.foundation import Stores
from gpudev.domain.github import GitHubPolicy, namespace_of
from gpudev.ports.clock import Clock
from gpudev.settings.access import GitHubSettings


def make_github_check(
    settings: GitHubSettings, stores: Stores, clock: Clock, servers: frozenset[str]
) -> GitHubCheck | None:
    """None unless the operator has named what people must be in; `servers` are our own public names."""
    if not settings.wants_check:
        return None
    # Late: asyncssh takes longer to load than much of the API, and most do without.
    from gpudev.adapters.github.directory import GitHubApi, RestDirectory  # noqa: PLC0415 - see above
    from gpudev.adapters.github.signatures import SshSignatures  # noqa: PLC0415 - see above

    policy = GitHubPolicy(
        organisation=settings.organisation,
        team=settings.team,
        repository=settings.repository,
        proof_life=timedelta(days=settings.proof_days),
    )
    api = GitHubApi(settings.api_url, settings.token.get_secret_value(), settings.timeout_seconds)
    return GitHubCheck(
        policy=policy,
        bindings=stores.github_bindings,
        published=GitHubKeys(settings.url, settings.timeout_seconds),
        signatures=SshSignatures(frozenset(map(namespace_of, servers))),
        standing=GoodStanding(RestDirectory(api), policy, clock),
        clock=clock,
    )
