"""Signatures as `ssh-keygen -Y sign` makes them ("SSHSIG"), checked against a user's public keys.

The armour and the envelope are read here, strictly; the signature inside is checked by `public_keys`, which
knows every kind of key that GitHub takes. Neither a file nor a program is needed.

A signature is made for a namespace. Ours holds the name of the server, as the client that signed knows it, so
that a server which is given one cannot use it at another, and neither can whoever got one for a file or a
commit.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import struct
from dataclasses import dataclass

from gpudev.adapters.github.public_keys import is_signed_by
from gpudev.adapters.github.ssh_fields import Fields
from gpudev.domain.errors import Unauthenticated
from gpudev.texts.fact import Fact, fact

MAX_SIGNATURE = 16_384

_ARMOUR = re.compile(r"-----BEGIN SSH SIGNATURE-----\r?\n([A-Za-z0-9+/=\r\n]+)-----END SSH SIGNATURE-----\s*")
_MAGIC = b"SSHSIG"
_VERSION = 1
_HASHES = {b"sha256": hashlib.sha256, b"sha512": hashlib.sha512}


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a signature says of itself."""

    public_key: bytes
    namespace: str
    hash_name: bytes
    signature: bytes

    def signed_bytes(self, message: bytes) -> bytes:
        """What is really signed when this message is."""
        digest = _HASHES[self.hash_name](message).digest()
        parts = (self.namespace.encode(), b"", self.hash_name, digest)
        return _MAGIC + b"".join(struct.pack(">I", len(part)) + part for part in parts)


class SshSignatures:
    def __init__(self, namespaces: frozenset[str]) -> None:
        self._namespaces = namespaces

    def check(self, signature: str, message: bytes, public_keys: tuple[str, ...]) -> None:
        envelope = read_envelope(signature)
        if envelope.namespace not in self._namespaces:
            raise Unauthenticated(
                "github_other_server", code="github_other_server", server=envelope.namespace[:100]
            )
        if not _is_published(envelope.public_key, public_keys):
            raise Unauthenticated("github_key_unknown", code="github_key_unknown")
        if not is_signed_by(envelope.public_key, envelope.signature, envelope.signed_bytes(message)):
            raise Unauthenticated("github_signature_wrong", code="github_signature_wrong")


def read_envelope(armoured: str) -> Envelope:
    """Raises `Unauthenticated` for everything that is not exactly one signature."""
    match = _ARMOUR.fullmatch(armoured) if len(armoured) <= MAX_SIGNATURE else None
    if match is None:
        raise _malformed(fact("github_signature_not_armoured"))
    try:
        fields = Fields(base64.b64decode("".join(match[1].split()), validate=True))
        if fields.take(len(_MAGIC)) != _MAGIC or fields.number() != _VERSION:
            raise _malformed(fact("github_signature_of_other_kind"))
        public_key, namespace, reserved = fields.text(), fields.text(), fields.text()
        hash_name, signature = fields.text(), fields.text()
        fields.expect_end()
        envelope = Envelope(public_key, namespace.decode(), hash_name, signature)
    except (binascii.Error, struct.error, UnicodeDecodeError) as error:
        raise _malformed(fact("github_signature_altered")) from error
    if reserved or hash_name not in _HASHES:
        raise _malformed(fact("github_signature_unsupported"))
    return envelope


def _is_published(public_key: bytes, lines: tuple[str, ...]) -> bool:
    wanted = base64.b64encode(public_key).decode()
    return any(line.split()[1] == wanted for line in lines)


def _malformed(why: Fact) -> Unauthenticated:
    return Unauthenticated("github_signature_malformed", code="github_signature_malformed", why=why)
