"""One's own API keys: list them, replace one, end one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from gpudev.app.caller import Caller
from gpudev.app.login import KEY_PREFIX_LENGTH, IssuedKey, KeyLife, make_key
from gpudev.domain.audit import AuditAction
from gpudev.domain.errors import NotFound
from gpudev.ports.api_keys import ApiKeys, Rotation, StoredKey
from gpudev.ports.clock import Clock


@dataclass(frozen=True, slots=True)
class Keys:
    api_keys: ApiKeys
    clock: Clock
    life: KeyLife
    overlap: timedelta
    """How long a replaced key goes on working, for requests that are on their way."""

    async def list_own(self, caller: Caller) -> tuple[StoredKey, ...]:
        return await self.api_keys.list_of(caller.user_id, caller.key_hash, self.clock.now())

    async def rotate(self, caller: Caller) -> IssuedKey:
        """A new key for the rest of the login. The old one has no other successor, whoever asks with it."""
        now = self.clock.now()
        api_key, new = make_key(now, self.life)
        rotation = Rotation(caller.user_id, caller.key_hash, now + self.overlap, new)
        audit = caller.entry(AuditAction.KEY_ROTATED, new.prefix)
        ends_at = await self.api_keys.rotate(rotation, now, audit)
        return IssuedKey(api_key, new.prefix, ends_at, caller)

    async def revoke(self, caller: Caller, prefix: str) -> None:
        """End a key; one that has ended already is ended, again."""
        if len(prefix) != KEY_PREFIX_LENGTH or not prefix.isprintable():
            raise NotFound("key_is_named_by_prefix", length=KEY_PREFIX_LENGTH)
        await self.api_keys.revoke(caller.user_id, prefix, caller.entry(AuditAction.KEY_REVOKED, prefix))
