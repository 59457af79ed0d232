"""Logins and the short-lived API keys that they give: login on one machine, guard, key rotation."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gpudev.app.audit_log import AuditTally
from gpudev.app.identity.authentication import Caller, hash_key
from gpudev.app.limits import origin_of
from gpudev.domain.audit import AuditAction, AuditEntry, AuditOutcome, tidy
from gpudev.domain.errors import NotAllowed, NotFound, ProofNeeded, TooManyRequests, Unauthenticated
from gpudev.domain.limits import NO_WAIT, find_wait
from gpudev.ports.clock import Clock
from gpudev.ports.users import ApiKeys, LoginFailures, NewKey, Rotation, StoredKey, User, Users
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say

PROOF_LIFE = timedelta(minutes=1)
KEY_PREFIX_LENGTH = 8
_KEY_BYTES = 32
SUSPECTS_AT_ONCE = 4
"""Logins of addresses over the limit that are verified at once, in each process, where that takes a while."""
MAX_BLOCKED = 10_000
"""Addresses that a process remembers to be over the limit; one that is forgotten is looked up again."""


@dataclass(frozen=True, slots=True)
class LoginOrigin:
    """How and from where somebody logs in."""

    method: str
    address: str


@dataclass(frozen=True, slots=True)
class KeyLife:
    key: timedelta
    """Of one key."""
    login: timedelta
    """Of the login, with all keys that come of it by rotation."""

    @property
    def hours(self) -> int:
        """Of the first key, rounded down, and at least one."""
        return max(1, int(min(self.key, self.login) / timedelta(hours=1)))


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A key in clear: it is shown once and never stored."""

    api_key: str = field(repr=False)
    prefix: str
    expires_at: datetime
    user: User


@dataclass(frozen=True, slots=True)
class KeyIssuer:
    users: Users
    clock: Clock
    life: KeyLife

    async def issue(self, user: User, origin: LoginOrigin) -> IssuedKey:
        """The key that ends a login; both are written to the audit log, together with the key itself."""
        api_key, key = make_key(self.clock.now(), self.life)
        login = AuditEntry(user.username, AuditAction.LOGIN, origin.method, origin.address)
        issued = AuditEntry(user.username, AuditAction.KEY_ISSUED, key.prefix, origin.address)
        await self.users.add_key(user.user_id, key, (login, issued))
        return IssuedKey(api_key, key.prefix, key.expires_at, user)


@dataclass(frozen=True, slots=True)
class LoginProof:
    """Shows that its sender can read the login file, without giving away what is in it."""

    timestamp: int
    nonce: str
    proof: str


@dataclass(frozen=True, slots=True)
class LocalLogin:
    """The login of the one-machine mode: whoever can read the server owner's file is the owner."""

    users: Users
    issuer: KeyIssuer
    clock: Clock
    secret: bytes = field(repr=False)
    owner: str
    hosts: frozenset[str]
    """The host:port addresses under which this server may be spoken to."""

    async def log_in(self, proof: LoginProof, origin: LoginOrigin) -> IssuedKey:
        now = self.clock.now()
        if abs(now.timestamp() - proof.timestamp) > PROOF_LIFE.total_seconds():
            raise Unauthenticated("login_proof_too_old")
        if not self._is_genuine(proof):
            raise Unauthenticated("login_proof_does_not_fit")
        spent = hashlib.sha256(proof.proof.encode()).digest()
        if not await self.users.use_proof(spent, now, now + 2 * PROOF_LIFE):
            raise Unauthenticated("login_proof_replayed")
        user = await self.users.upsert(self.owner)
        if not user.is_active:
            raise NotAllowed("user_disabled", username=user.username)
        return await self.issuer.issue(user, origin)

    def _is_genuine(self, proof: LoginProof) -> bool:
        expected = [
            make_proof(self.secret, proof.timestamp, proof.nonce, host).encode() for host in self.hosts
        ]
        return any(hmac.compare_digest(proof.proof.encode(), candidate) for candidate in expected)


def make_proof(secret: bytes, timestamp: int, nonce: str, host: str) -> str:
    return hmac.new(secret, f"{timestamp}\n{nonce}\n{host}".encode(), hashlib.sha256).hexdigest()


def make_key(now: datetime, life: KeyLife) -> tuple[str, NewKey]:
    """A new key in clear, and as it is stored, as the first of a login that begins now."""
    api_key = secrets.token_urlsafe(_KEY_BYTES)
    login_ends_at = now + life.login
    expires_at = min(now + life.key, login_ends_at)
    return api_key, NewKey(hash_key(api_key), api_key[:KEY_PREFIX_LENGTH], expires_at, login_ends_at)


@dataclass(frozen=True, slots=True)
class KeyRing:
    """One's own API keys."""

    api_keys: ApiKeys
    clock: Clock
    life: KeyLife
    overlap: timedelta
    """How long a replaced key goes on working, for requests that are on their way."""

    async def list_own(self, caller: Caller) -> tuple[StoredKey, ...]:
        return await self.api_keys.list_keys(caller.user_id, caller.key_hash, self.clock.now())

    async def rotate(self, caller: Caller) -> IssuedKey:
        """A new key for the rest of the login. The old one has no other successor, whoever asks with it."""
        now = self.clock.now()
        api_key, new = make_key(now, self.life)
        rotation = Rotation(caller.user_id, caller.key_hash, now + self.overlap, new)
        audit = caller.entry(AuditAction.KEY_ROTATED, new.prefix)
        ends_at = await self.api_keys.rotate_key(rotation, now, audit)
        return IssuedKey(api_key, new.prefix, ends_at, caller)

    async def revoke(self, caller: Caller, prefix: str) -> None:
        """End a key; one that has ended already is ended, again."""
        if len(prefix) != KEY_PREFIX_LENGTH or not prefix.isprintable():
            raise NotFound("key_is_named_by_prefix", length=KEY_PREFIX_LENGTH)
        await self.api_keys.revoke_key(caller.user_id, prefix, caller.entry(AuditAction.KEY_REVOKED, prefix))


class LoginGuard:
    """Around every way to log in: counts and writes down what fails, and limits who fails too often.

    Whoever logs in correctly is accepted, however many others have failed from the same address: the count is
    looked at after a login has failed, never before. What an address over the limit costs is bounded all the
    same: its failures are neither counted nor written one by one any more, and of its logins that AWS has to
    be asked about only a few are worked on at once, so that the others have room.

    The count is kept in the database, for all replicas together. A failure is written right after it
    happened, in a transaction of its own: there is no action that it could belong to. A success is written
    together with the key that it gives.
    """

    def __init__(
        self, failures: LoginFailures, tally: AuditTally, clock: Clock, limit: int, window: timedelta
    ) -> None:
        """So many failures from one origin within the window, and the next ones are answered 429."""
        self._failures = failures
        self._tally = tally
        self._clock = clock
        self._limit = limit
        self._window = window
        self._blocked: OrderedDict[str, datetime] = OrderedDict()
        self._suspects = asyncio.Semaphore(SUSPECTS_AT_ONCE)

    @asynccontextmanager
    async def watch(self, origin: LoginOrigin) -> AsyncIterator[None]:
        try:
            async with self._lane_of(origin):
                yield
        except ProofNeeded as error:
            # Who is asked for one more proof has shown who they are: that is the way of a first login.
            await self._tally.write(_failed(origin, error.message))
            raise
        except (Unauthenticated, NotAllowed) as error:
            if wait := await self._count(origin_of(origin.address)):
                self._tally.note(_failed(origin, say(fact("audit_login_failed_often"))))
                raise _too_many(wait) from error
            await self._tally.write(_failed(origin, error.message))
            raise

    def _lane_of(self, origin: LoginOrigin) -> AbstractAsyncContextManager[object]:
        is_quick = origin.method == "local"
        return nullcontext() if is_quick or not self._wait_of(origin_of(origin.address)) else self._suspects

    async def _count(self, origin: str) -> timedelta:
        """One more failure; how long until one of this origin is answered as such again."""
        if wait := self._wait_of(origin):
            return wait
        now = self._clock.now()
        blocking = await self._failures.find_login_block(origin, now - self._window, self._limit)
        if wait := find_wait(blocking, self._window, now):
            self._remember(origin, now + wait)
            return wait
        await self._failures.count_login_failure(origin, now, self._window)
        return NO_WAIT

    def _wait_of(self, origin: str) -> timedelta:
        until = self._blocked.get(origin)
        return max(NO_WAIT, until - self._clock.now()) if until else NO_WAIT

    def _remember(self, origin: str, until: datetime) -> None:
        self._blocked[origin] = until
        self._blocked.move_to_end(origin)
        if len(self._blocked) > MAX_BLOCKED:
            self._blocked.popitem(last=False)


def _too_many(wait: timedelta) -> TooManyRequests:
    return TooManyRequests("too_many_failed_logins", retry_after=wait, code="too_many_failed_logins")


def _failed(origin: LoginOrigin, message: str) -> AuditEntry:
    return AuditEntry(
        username="",
        action=AuditAction.LOGIN,
        target=origin.method,
        address=origin.address,
        outcome=AuditOutcome.REFUSED,
        detail=tidy(message),
    )
