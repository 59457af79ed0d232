"""Who may come in, and how often: keys, limits and admins, made from the settings."""

from __future__ import annotations

import os
import pwd
from datetime import timedelta

from gpudev.app.audit_log import AuditTally
from gpudev.app.identity.authentication import Admit, Authenticate, KeyScreen, KeyUses
from gpudev.app.identity.login import IssueKey, KeyLife, Keys, LoginGuard
from gpudev.app.limits import Limiter
from gpudev.bootstrap.foundation import Stores, has_sole_owner
from gpudev.domain.identity import local_identity, read_admin
from gpudev.domain.limits import Rate
from gpudev.ports.clock import Clock
from gpudev.settings import Settings

_KEY_USES_SECONDS = 30


def make_admit(
    settings: Settings, authenticate: Authenticate, key_uses: KeyUses, tally: AuditTally, clock: Clock
) -> Admit:
    access = settings.access
    requests = Rate(access.requests_per_second, access.request_burst)
    wrong_keys = Rate(access.wrong_keys_per_minute / 60, max(1, round(access.wrong_keys_per_minute)))
    return Admit(
        authenticate=authenticate,
        clock=clock,
        key_uses=key_uses,
        requests=Limiter(requests, clock, "api_key_asks_too_often"),
        admins=read_admins(settings),
        tally=tally,
        screen=KeyScreen(authenticate.users, Limiter(wrong_keys, clock, "too_many_wrong_keys")),
    )


def make_submit_limiter(settings: Settings, clock: Clock) -> Limiter:
    """Whoever submits and cancels without end takes the controllers' time from everybody else."""
    access = settings.access
    per_minute = 0.0 if has_sole_owner(settings) else access.submits_per_minute
    return Limiter(Rate(per_minute / 60, access.submit_burst), clock, "submits_too_often")


def make_key_uses(stores: Stores, clock: Clock) -> KeyUses:
    return KeyUses(stores.api_keys, clock, _KEY_USES_SECONDS)


def make_keys(settings: Settings, stores: Stores, clock: Clock) -> Keys:
    overlap = timedelta(seconds=settings.access.key_overlap_seconds)
    return Keys(stores.api_keys, clock, _key_life(settings), overlap)


def make_issue_key(settings: Settings, stores: Stores, clock: Clock) -> IssueKey:
    return IssueKey(stores.users, clock, _key_life(settings))


def _key_life(settings: Settings) -> KeyLife:
    return KeyLife(settings.api.key_life, settings.api.login_life)


def make_login_guard(settings: Settings, stores: Stores, tally: AuditTally, clock: Clock) -> LoginGuard:
    window = timedelta(minutes=settings.access.login_failure_minutes)
    return LoginGuard(stores.login_failures, tally, clock, settings.access.login_failures, window)


def read_admins(settings: Settings) -> frozenset[str]:
    """The owner of the machine is an admin on it: the database and all processes are theirs anyway."""
    named = frozenset(map(read_admin, settings.access.admins))
    if settings.local.state_dir is None:
        return named
    return named | {local_identity(pwd.getpwuid(os.getuid()).pw_name)}
