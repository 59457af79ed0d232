"""Authentication of a request: whose key it carries, and whether its sender asks too often.

A visitor shows a key; who that is, is found out by a statement of its own, or by the one that does what was
asked for. Either way `Authentication.check` has the last word.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from gpudev.app.audit_log import AuditTally
from gpudev.app.limits import Limiter, origin_of
from gpudev.domain.audit import AuditAction, AuditEntry, AuditOutcome, tidy
from gpudev.domain.errors import NotAllowed, StoreUnavailable, Unauthenticated
from gpudev.domain.names import UserId
from gpudev.ports.clock import Clock
from gpudev.ports.users import ApiKeys, ShownKey, User, Users

MOST_KEPT = 10_000
_KEY = re.compile(r"[A-Za-z0-9_-]{8,128}")


@dataclass(frozen=True, slots=True)
class Caller(User):
    """Who is calling: a user, from where, and whether as an admin."""

    address: str = ""
    is_admin: bool = False
    key_hash: bytes = field(default=b"", repr=False)
    """Which of the user's keys was used."""

    def entry(
        self, action: str, target: str = "", *, detail: str = "", outcome: str = AuditOutcome.DONE
    ) -> AuditEntry:
        """What this caller does, for the audit log."""
        return AuditEntry(self.username, action, tidy(target), self.address, outcome, tidy(detail))


def charge_nobody(_: UserId) -> None:
    """For connections that somebody else counts."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody with a key, and nobody knows yet whether it is a good one."""

    key: ShownKey
    address: str
    claim: Callable[[UserId], None] = charge_nobody
    """Called with the key's user once that is known: charges the connection to them, or raises."""


@dataclass(frozen=True, slots=True)
class KeyOwners:
    """Users by their keys."""

    users: Users
    clock: Clock

    async def get(self, key_hash: bytes) -> User:
        return self.check(await self.users.find_by_key(key_hash, self.clock.now()))

    def check(self, user: User | None) -> User:
        """Whether the owner of a key, if it has one, may come in."""
        if user is None:
            raise Unauthenticated("api_key_unknown")
        if not user.is_active:
            raise NotAllowed("user_disabled", username=user.username)
        return user


class KeyUses:
    """When each key was last used: collected in memory and written now and then, never by a request itself.

    What was collected is lost when the process is killed, and that is fine: it is a hint for people.
    """

    def __init__(self, api_keys: ApiKeys, clock: Clock, every_seconds: float) -> None:
        self._api_keys = api_keys
        self._clock = clock
        self._every_seconds = every_seconds
        self._uses: dict[bytes, datetime] = {}

    def note(self, key_hash: bytes) -> None:
        self._uses[key_hash] = self._clock.now()

    async def write(self) -> None:
        """What the database does not take now is tried again with the next ones."""
        uses, self._uses = self._uses, {}
        if not uses:
            return
        try:
            await self._api_keys.note_key_uses(uses)
        except StoreUnavailable:
            self._uses = {**uses, **self._uses}

    async def run(self) -> None:
        """Write until cancelled, and once more then."""
        try:
            while True:
                await asyncio.sleep(self._every_seconds)
                await self.write()
        finally:
            await self.write()


class RecentKeys:
    """The hashes of keys that were seen last."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._hashes: OrderedDict[bytes, None] = OrderedDict()

    def __contains__(self, key_hash: bytes) -> bool:
        return key_hash in self._hashes

    def add(self, key_hash: bytes) -> None:
        self._hashes[key_hash] = None
        self._hashes.move_to_end(key_hash)
        if len(self._hashes) > self._most:
            self._hashes.popitem(last=False)

    def remove(self, key_hash: bytes) -> None:
        self._hashes.pop(key_hash, None)


@dataclass(frozen=True, slots=True)
class KeyScreen:
    """Keeps wrong keys away from the database, without keeping out a good one.

    What is no key at all is rejected at once. An address that has shown too many wrong keys is told so before
    the database is asked, if its key was wrong before. A key that was not seen yet may be a good one, of a
    neighbour at the same address, and is looked up; one at a time, so that guesses cannot use up the
    connections to the database.
    """

    users: Users
    wrong_keys: Limiter
    """For each origin. It stops nobody who has a good key, so that one bad neighbour locks no office out."""
    _good: RecentKeys = field(default_factory=RecentKeys)
    _wrong: RecentKeys = field(default_factory=RecentKeys)
    _lane: asyncio.Lock = field(default_factory=asyncio.Lock)

    def check_form(self, api_key: str, address: str) -> None:
        """Raises if this cannot be a key, whoever it would belong to."""
        if _KEY.fullmatch(api_key) is None:
            self.wrong_keys.take(origin_of(address))
            raise Unauthenticated("not_an_api_key")

    async def check(self, key: ShownKey, address: str) -> None:
        """Raises `TooManyRequests` for a wrong key from an address that has shown too many of them."""
        origin = origin_of(address)
        if key.key_hash in self._good or not self.wrong_keys.is_exhausted(origin):
            return
        if key.key_hash not in self._wrong:
            async with self._lane:
                if await self.users.find_by_key(key.key_hash, key.at) is not None:
                    return
        self._wrong.add(key.key_hash)
        self.wrong_keys.take(origin)

    def note_good(self, key: ShownKey) -> None:
        self._good.add(key.key_hash)

    def note_wrong(self, key: ShownKey, address: str) -> None:
        """Raises `TooManyRequests` if it is one too many."""
        self._good.remove(key.key_hash)
        self._wrong.add(key.key_hash)
        self.wrong_keys.take(origin_of(address))


@dataclass(frozen=True, slots=True)
class Authentication:
    owners: KeyOwners
    clock: Clock
    key_uses: KeyUses
    requests: Limiter
    """For each key."""
    screen: KeyScreen
    admins: frozenset[str]
    """Identities, as `domain.identity` writes them. A username alone makes nobody an admin."""
    tally: AuditTally

    async def meet(
        self, api_key: str, address: str, claim: Callable[[UserId], None] = charge_nobody
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

    async def authenticate(self, visitor: Visitor) -> Caller:
        key = visitor.key
        return self.check(visitor, await self.owners.users.find_by_key(key.key_hash, key.at))

    def check(self, visitor: Visitor, user: User | None) -> Caller:
        """Who the visitor is, once it is known whose key it is, if anybody's."""
        try:
            accepted = self.owners.check(user)
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


def hash_key(api_key: str) -> bytes:
    return hashlib.sha256(api_key.encode()).digest()


def _wrong_key(address: str) -> AuditEntry:
    """Of the key itself nothing is written: it may be a good one with a letter missing."""
    return AuditEntry("", AuditAction.WRONG_KEY, address=address, outcome=AuditOutcome.REFUSED)
