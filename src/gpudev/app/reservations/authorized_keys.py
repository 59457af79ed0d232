"""The SSH keys that a dev server accepts: those that were sent, and those of a GitHub user."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from gpudev.domain.access import check_public_keys, combine_public_keys
from gpudev.domain.errors import Invalid, KeysUnavailable
from gpudev.domain.names import check_github_user
from gpudev.ports.clock import Clock
from gpudev.ports.identity import KnownKeys, PublishedKeys, StoredKeys
from gpudev.texts.fact import Fact, fact

FRESH_FOR = timedelta(minutes=1)
"""So long keys are not read again; many requests of one user at once read them once."""


@dataclass(frozen=True, slots=True)
class AuthorizedKeys:
    public_keys: tuple[str, ...]
    github_user: str = ""
    warning: Fact | None = None
    """What the user should know about the keys."""


@dataclass(frozen=True, slots=True)
class KeyCollection:
    published: PublishedKeys
    known: KnownKeys
    clock: Clock

    async def collect(self, sent: tuple[str, ...], github_user: str) -> AuthorizedKeys:
        """All keys that may log in; refused if there is none."""
        if not github_user:
            return AuthorizedKeys(check_public_keys(sent))
        user = check_github_user(github_user)
        keys = check_public_keys(sent) if sent else ()
        try:
            published = await self._list_published(user)
        except KeysUnavailable as error:
            if not keys:
                raise
            return AuthorizedKeys(keys, user, fact("github_keys_unavailable", cause=error.fact))
        if published:
            return AuthorizedKeys(check_public_keys(combine_public_keys(keys, published)), user)
        if keys:
            return AuthorizedKeys(keys, user, fact("github_without_keys", user=user))
        raise Invalid("no_public_key_and_none_at_github", github_user=user, code="no_ssh_key")

    async def _list_published(self, github_user: str) -> tuple[str, ...]:
        """As they are now; as they were when they could be read last, if they cannot be read."""
        now = self.clock.now()
        known = await self.known.find_keys(github_user)
        # None found is asked for again at once: people add a key because we told them so.
        if known and known.keys and now - known.fetched_at < FRESH_FOR:
            return known.keys
        try:
            keys = await self.published.list_keys(github_user)
        except KeysUnavailable:
            if known is None or not known.keys:
                raise
            return known.keys
        await self.known.keep_keys(github_user, StoredKeys(keys, now))
        return keys
