"""Who gets in: the SSH public keys that a dev server accepts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpudev.domain.errors import Invalid

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
        raise Invalid(
            "No SSH public key was given, so nobody could log in.",
            hint="Make one with: ssh-keygen -t ed25519",
            code="no_ssh_key",
        )
    if len(stripped) > MAX_PUBLIC_KEYS:
        raise Invalid(f"More than {MAX_PUBLIC_KEYS} SSH public keys were given.", code="bad_ssh_key")
    for key in stripped:
        if not is_public_key(key):
            raise Invalid(
                f'"{key[:40]}" is not an SSH public key that is accepted.',
                hint="Use ed25519, rsa, ecdsa or sk- keys in the form of a .pub file.",
                code="bad_ssh_key",
            )
    return stripped
