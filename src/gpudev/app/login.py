"""Log in to a server on one's own machine, and the short-lived keys that a login gives."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gpudev.domain.audit import AuditAction, AuditEntry
from gpudev.domain.errors import NotAllowed, Unauthenticated
from gpudev.ports.clock import Clock
from gpudev.ports.users import NewKey, User, Users

PROOF_LIFE = timedelta(minutes=1)
KEY_PREFIX_LENGTH = 8
_KEY_BYTES = 32


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
class IssueKey:
    users: Users
    clock: Clock
    life: KeyLife

    async def __call__(self, user: User, origin: LoginOrigin) -> IssuedKey:
        """The key that ends a login; both are written to the audit log, together with the key itself."""
        api_key, key = make_key(self.clock.now(), self.life)
        login = AuditEntry(user.username, AuditAction.LOGIN, origin.method, origin.address)
        issued = AuditEntry(user.username, AuditAction.KEY_ISSUED, key.prefix, origin.address)
        await self.users.add_key(user.user_id, key, (login, issued))
        return IssuedKey(api_key, key.prefix, key.expires_at, user)


@dataclass(frozen=True, slots=True)
class Authenticate:
    users: Users
    clock: Clock

    async def __call__(self, key_hash: bytes) -> User:
        return self.check(await self.users.find_by_key(key_hash, self.clock.now()))

    def check(self, user: User | None) -> User:
        """Whether the owner of a key, if it has one, may come in."""
        if user is None:
            raise Unauthenticated("api_key_unknown")
        if not user.is_active:
            raise NotAllowed("user_disabled", username=user.username)
        return user


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
    issue_key: IssueKey
    clock: Clock
    secret: bytes = field(repr=False)
    owner: str
    hosts: frozenset[str]
    """The host:port addresses under which this server may be spoken to."""

    async def __call__(self, proof: LoginProof, origin: LoginOrigin) -> IssuedKey:
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
        return await self.issue_key(user, origin)

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


def hash_key(api_key: str) -> bytes:
    return hashlib.sha256(api_key.encode()).digest()
