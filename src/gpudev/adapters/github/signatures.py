"""Signatures as `ssh-keygen -Y sign` makes them ("SSHSIG"), checked against a user's public keys.

The armour and the envelope are read here, strictly; the signature inside is checked by asyncssh, which knows
every kind of key that GitHub takes. Neither a file nor a program is needed.

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

import asyncssh

from gpudev.domain.errors import Unauthenticated

MAX_SIGNATURE = 16_384

_ARMOUR = re.compile(r"-----BEGIN SSH SIGNATURE-----\r?\n([A-Za-z0-9+/=\r\n]+)-----END SSH SIGNATURE-----\s*")
_MAGIC = b"SSHSIG"
_VERSION = 1
_HASHES = {b"sha256": hashlib.sha256, b"sha512": hashlib.sha512}
_RSA = b"ssh-rsa"
_RSA_ALGORITHMS = frozenset({b"rsa-sha2-256", b"rsa-sha2-512"})
"""Not `ssh-rsa` itself, which is with SHA-1."""
_LOGIN_HINT = "Log in again with: gpu-dev login"


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
            raise _refusal(
                "github_other_server",
                f'The challenge was signed for "{envelope.namespace[:100]}", which is not this server.',
                hint="Use the server's public name in GPU_DEV_API_URL. "
                "Operators list the names in GPU_DEV_PUBLIC_NAMES.",
            )
        line = _find_line(envelope.public_key, public_keys)
        if line is None:
            raise _refusal(
                "github_key_unknown",
                "The challenge was signed with a key that the GitHub user has not published.",
                hint="Add it at https://github.com/settings/keys, or sign with one that is there.",
            )
        if not _is_genuine(line, envelope, message):
            raise _refusal("github_signature_wrong", "The signature is not one of the challenge.")


def read_envelope(armoured: str) -> Envelope:
    """Raises `Unauthenticated` for everything that is not exactly one signature."""
    match = _ARMOUR.fullmatch(armoured) if len(armoured) <= MAX_SIGNATURE else None
    if match is None:
        raise _malformed("it is not in the form that ssh-keygen -Y sign writes")
    try:
        fields = _Fields(base64.b64decode("".join(match[1].split()), validate=True))
        if fields.take(len(_MAGIC)) != _MAGIC or fields.number() != _VERSION:
            raise _malformed("it is of another kind or version")
        public_key, namespace, reserved = fields.text(), fields.text(), fields.text()
        hash_name, signature = fields.text(), fields.text()
        fields.expect_end()
        envelope = Envelope(public_key, namespace.decode(), hash_name, signature)
    except (binascii.Error, struct.error, UnicodeDecodeError) as error:
        raise _malformed("it is cut or altered") from error
    if reserved or hash_name not in _HASHES:
        raise _malformed("it uses what this server does not know")
    return envelope


class _Fields:
    """Reads the fields of an SSH message one after the other; `struct.error` where it is too short."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) != count:
            raise struct.error("too short")
        self._at += count
        return taken

    def number(self) -> int:
        (value,) = struct.unpack(">I", self.take(4))
        return int(value)

    def text(self) -> bytes:
        return self.take(self.number())

    def expect_end(self) -> None:
        if self._at != len(self._data):
            raise struct.error("too long")


def _find_line(public_key: bytes, lines: tuple[str, ...]) -> str | None:
    wanted = base64.b64encode(public_key).decode()
    return next((line for line in lines if line.split()[1] == wanted), None)


def _is_genuine(line: str, envelope: Envelope, message: bytes) -> bool:
    kind = line.split(maxsplit=1)[0].encode()
    try:
        algorithm = _Fields(envelope.signature).text()
        key = asyncssh.import_public_key(line)
    except (struct.error, asyncssh.KeyImportError):
        return False
    if algorithm not in (_RSA_ALGORITHMS if kind == _RSA else {kind}):
        return False
    return key.verify(envelope.signed_bytes(message), envelope.signature)


def _malformed(why: str) -> Unauthenticated:
    return _refusal("github_signature_malformed", f"The signature cannot be read: {why}.")


def _refusal(code: str, message: str, hint: str = _LOGIN_HINT) -> Unauthenticated:
    return Unauthenticated(message, hint=hint, code=code)
