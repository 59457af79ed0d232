"""Whether a request may come in: whose key it carries, and whether its sender asks too often.

A visitor shows a key; who that is, is found out by a statement of its own, or by the one that does what was
asked for. Either way `check` has the last word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpudev.app.audit_tally import AuditTally
from gpudev.app.caller import Caller
from gpudev.app.key_screen import KeyScreen
from gpudev.app.key_uses import KeyUses
from gpudev.app.limits import Limiter
from gpudev.app.login import Authenticate, hash_key
from gpudev.domain.audit import AuditAction, AuditEntry, AuditOutcome
from gpudev.domain.errors import Unauthenticated
from gpudev.domain.names import UserId
from gpudev.ports.clock import Clock
from gpudev.ports.users import ShownKey, User


def _charge_nobody(_: UserId) -> None:
    """For connections that somebody else counts."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody with a key, and nobody knows yet whether it is a good one."""

    key: ShownKey
    address: str
    claim: Callable[[UserId], None] = _charge_nobody
    """Called with the key's user once that is known: charges the connection to them, or raises."""


@dataclass(frozen=True, slots=True)
class Admit:
    authenticate: Authenticate
    clock: Clock
    key_uses: KeyUses
    requests: Limiter
    """For each key."""
    screen: KeyScreen
    admins: frozenset[str]
    """Identities, as `domain.identity` writes them. A username alone makes nobody an admin."""
    tally: AuditTally

    async def meet(
        self, api_key: str, address: str, claim: Callable[[UserId], None] = _charge_nobody
    ) -> Visitor:
        try:
            self.screen.check_form(api_key, address)
        except Unauthenticated:
            self.tally.note(_wrong_key(address))
            raise
        key = ShownKey(hash_key(api_key), self.clock.now())
        self.requests.take(key.key_hash)
        await self.screen.check(key, address)
        return Visitor(key, address, claim)

    async def __call__(self, visitor: Visitor) -> Caller:
        key = visitor.key
        return self.check(visitor, await self.authenticate.users.find_by_key(key.key_hash, key.at))

    def check(self, visitor: Visitor, user: User | None) -> Caller:
        """Who the visitor is, once it is known whose key it is, if anybody's."""
        try:
            accepted = self.authenticate.check(user)
        except Unauthenticated:
            self.tally.note(_wrong_key(visitor.address))
            self.screen.note_wrong(visitor.key, visitor.address)
            raise
        self.screen.note_good(visitor.key)
        visitor.claim(accepted.user_id)
        self.key_uses.note(visitor.key.key_hash)
        return Caller(
            user_id=accepted.user_id,
            username=accepted.username,
            is_active=accepted.is_active,
            address=visitor.address,
            is_admin=accepted.identity in self.admins,
            identity=accepted.identity,
            key_hash=visitor.key.key_hash,
        )


def _wrong_key(address: str) -> AuditEntry:
    """Of the key itself nothing is written: it may be a good one with a letter missing."""
    return AuditEntry("", AuditAction.WRONG_KEY, address=address, outcome=AuditOutcome.REFUSED)
