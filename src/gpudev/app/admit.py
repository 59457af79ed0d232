"""Whether a request may come in: whose key it carries, and whether its sender asks too often."""

from __future__ import annotations

from dataclasses import dataclass

from gpudev.app.caller import Caller
from gpudev.app.key_uses import KeyUses
from gpudev.app.limits import Limiter, origin_of
from gpudev.app.login import Authenticate, hash_key
from gpudev.domain.errors import Unauthenticated


@dataclass(frozen=True, slots=True)
class Admit:
    authenticate: Authenticate
    key_uses: KeyUses
    requests: Limiter
    """For each key."""
    wrong_keys: Limiter
    """For each origin. It stops nobody who has a good key, so that one bad neighbour locks no office out."""
    admins: frozenset[str]

    async def __call__(self, api_key: str, address: str) -> Caller:
        key_hash = hash_key(api_key)
        self.requests.take(key_hash)
        try:
            user = await self.authenticate(api_key)
        except Unauthenticated:
            self.wrong_keys.take(origin_of(address))
            raise
        self.key_uses.note(key_hash)
        return Caller(
            user_id=user.user_id,
            username=user.username,
            is_active=user.is_active,
            address=address,
            is_admin=user.username in self.admins,
            key_hash=key_hash,
        )
