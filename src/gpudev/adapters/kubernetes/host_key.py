"""The host key of a dev server: made by us, so that it is known before anybody connects."""

from __future__ import annotations

from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)


@dataclass(frozen=True, slots=True)
class HostKey:
    private: str
    """In OpenSSH's own format."""
    public: str
    """`<algorithm> <base64>`."""


def make_host_key() -> HostKey:
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    return HostKey(private.decode(), _public_of(key))


def read_host_key(private: str) -> HostKey:
    key = load_ssh_private_key(private.encode(), password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise TypeError(type(key).__name__)  # ours are Ed25519 keys
    return HostKey(private, _public_of(key))


def _public_of(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
