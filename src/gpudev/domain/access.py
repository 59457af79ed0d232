"""Who gets in: whom the SSH proxy leads to a dev server, and the SSH public keys that the server accepts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpudev.domain.errors import Conflict, Invalid, NotFound
from gpudev.domain.names import UserId
from gpudev.domain.reservation import Reservation
from gpudev.domain.server import SshAddress
from gpudev.texts.vocabulary import Status

MAX_PUBLIC_KEYS = 100

_PUBLIC_KEY = re.compile(
    r"(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)"
    r"|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-nistp256@openssh\.com)"
    r" [A-Za-z0-9+/]{40,4096}={0,3}( [^\x00-\x1f\x7f\ud800-\udfff]*)?"
)


def is_public_key(line: str) -> bool:
    return _PUBLIC_KEY.fullmatch(line) is not None


def combine_public_keys(*sets: Iterable[str]) -> tuple[str, ...]:
    """All keys in order, each once, whatever comment it comes with."""
    combined: dict[tuple[str, ...], str] = {}
    for key in (key.strip() for keys in sets for key in keys):
        combined.setdefault(tuple(key.split()[:2]), key)
    return tuple(combined.values())


def check_public_keys(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse what sshd would not read as exactly one key a line; without a key nobody could log in."""
    stripped = tuple(key.strip() for key in keys)
    if not stripped:
        raise Invalid("no_public_key", code="no_ssh_key")
    if len(stripped) > MAX_PUBLIC_KEYS:
        raise Invalid("too_many_public_keys", most=MAX_PUBLIC_KEYS, code="bad_ssh_key")
    for key in stripped:
        if not is_public_key(key):
            raise Invalid("bad_public_key", text=key[:40], code="bad_ssh_key")
    return stripped


def may_connect(reservation: Reservation, user_id: UserId) -> bool:
    """Whether a user is led to the SSH port of a dev server at all. The server asks for a key besides."""
    return reservation.spec.user_id == user_id


def choose_address(reservation: Reservation, rank: int) -> SshAddress:
    """Where the dev server, or its part of this rank, answers on SSH."""
    if reservation.state.status is not Status.ACTIVE:
        status = reservation.state.status
        raise Conflict("not_active_to_connect", reservation=reservation.id, status=status, code="not_active")
    member = reservation.location.members[rank] if 0 <= rank < len(reservation.location.members) else None
    if member is None or member.address is None:
        raise NotFound("reservation_has_no_such_node", reservation=reservation.id, rank=rank)
    return member.address
