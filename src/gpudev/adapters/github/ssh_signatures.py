"""Signatures as `ssh-keygen -Y sign` makes them ("SSHSIG"), checked against a user's public keys.

Every kind of key that GitHub accepts is known here. Neither a file nor a program is needed. Keys of security
keys (`sk-...`) sign more than the message: the application that they were made for, a counter, and whether
somebody touched them, which is required here as in OpenSSH.

A signature is made for a namespace. Ours holds the name of the server, as the client that signed knows it,
so that a server which is given one cannot use it at another, and neither can whoever got one for a file or a
commit.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from gpudev.domain.errors import Unauthenticated
from gpudev.texts.fact import Fact, fact

_RSA_HASHES: dict[bytes, hashes.HashAlgorithm] = {
    b"rsa-sha2-256": hashes.SHA256(),
    b"rsa-sha2-512": hashes.SHA512(),
}
"""Not `ssh-rsa` itself, which is with SHA-1."""
_CURVES: dict[bytes, tuple[ec.EllipticCurve, hashes.HashAlgorithm]] = {
    b"nistp256": (ec.SECP256R1(), hashes.SHA256()),
    b"nistp384": (ec.SECP384R1(), hashes.SHA384()),
    b"nistp521": (ec.SECP521R1(), hashes.SHA512()),
}
_TOUCHED = 0x01
MAX_SIGNATURE = 16_384

_ARMOUR = re.compile(r"-----BEGIN SSH SIGNATURE-----\r?\n([A-Za-z0-9+/=\r\n]+)-----END SSH SIGNATURE-----\s*")
_MAGIC = b"SSHSIG"
_VERSION = 1
_HASHES = {b"sha256": hashlib.sha256, b"sha512": hashlib.sha512}


class Fields:
    """`struct.error` where the message is too short, or too long at its end."""

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

    def big_number(self) -> int:
        """Never negative: what keys and signatures hold is not."""
        return int.from_bytes(self.text())

    def expect_end(self) -> None:
        if self._at != len(self._data):
            raise struct.error("too long")


@dataclass(frozen=True, slots=True)
class _Signature:
    algorithm: bytes
    value: bytes
    rest: bytes
    """What a security key adds."""


_Check = Callable[[Fields, _Signature, bytes], None]


def is_signed_by(public_key: bytes, signature: bytes, data: bytes) -> bool:
    """All three as SSH has them on the wire. A key or a signature that cannot be read signs nothing."""
    try:
        key = Fields(public_key)
        kind = key.text()
        read = _read_signature(signature)
        if read.algorithm not in (_RSA_HASHES if kind == b"ssh-rsa" else {kind}) or kind not in _CHECKS:
            return False
        _CHECKS[kind](key, read, data)
    except (InvalidSignature, UnsupportedAlgorithm, ValueError, KeyError, struct.error):
        return False
    return True


def _read_signature(signature: bytes) -> _Signature:
    fields = Fields(signature)
    algorithm, value = fields.text(), fields.text()
    used = 2 * struct.calcsize(">I") + len(algorithm) + len(value)
    return _Signature(algorithm, value, signature[used:])


def _check_rsa(key: Fields, signature: _Signature, data: bytes) -> None:
    exponent, modulus = key.big_number(), key.big_number()
    key.expect_end()
    _expect_nothing(signature.rest)
    public = RSAPublicNumbers(exponent, modulus).public_key()
    # Some signers leave out leading zeros.
    value = signature.value.rjust(public.key_size // 8, b"\0")
    public.verify(value, data, padding.PKCS1v15(), _RSA_HASHES[signature.algorithm])


def _check_ed25519(key: Fields, signature: _Signature, data: bytes) -> None:
    public = key.text()
    key.expect_end()
    _expect_nothing(signature.rest)
    Ed25519PublicKey.from_public_bytes(public).verify(signature.value, data)


def _check_ecdsa(key: Fields, signature: _Signature, data: bytes) -> None:
    curve, point = key.text(), key.text()
    key.expect_end()
    _expect_nothing(signature.rest)
    _verify_ecdsa(curve, point, signature.value, data)


def _check_ed25519_of_security_key(key: Fields, signature: _Signature, data: bytes) -> None:
    public, application = key.text(), key.text()
    key.expect_end()
    signed = _signed_by_security_key(application, signature.rest, data)
    Ed25519PublicKey.from_public_bytes(public).verify(signature.value, signed)


def _check_ecdsa_of_security_key(key: Fields, signature: _Signature, data: bytes) -> None:
    curve, point, application = key.text(), key.text(), key.text()
    key.expect_end()
    signed = _signed_by_security_key(application, signature.rest, data)
    _verify_ecdsa(curve, point, signature.value, signed)


def _verify_ecdsa(curve_name: bytes, point: bytes, value: bytes, data: bytes) -> None:
    curve, digest = _CURVES[curve_name]
    numbers = Fields(value)
    encoded = encode_dss_signature(numbers.big_number(), numbers.big_number())
    numbers.expect_end()
    ec.EllipticCurvePublicKey.from_encoded_point(curve, point).verify(encoded, data, ec.ECDSA(digest))


def _signed_by_security_key(application: bytes, rest: bytes, data: bytes) -> bytes:
    fields = Fields(rest)
    flags, counter = fields.take(1), fields.take(4)
    fields.expect_end()
    if not flags[0] & _TOUCHED:
        raise InvalidSignature  # nobody touched the security key
    return hashlib.sha256(application).digest() + flags + counter + hashlib.sha256(data).digest()


def _expect_nothing(rest: bytes) -> None:
    Fields(rest).expect_end()


_CHECKS: dict[bytes, _Check] = {
    b"ssh-rsa": _check_rsa,
    b"ssh-ed25519": _check_ed25519,
    b"ecdsa-sha2-nistp256": _check_ecdsa,
    b"ecdsa-sha2-nistp384": _check_ecdsa,
    b"ecdsa-sha2-nistp521": _check_ecdsa,
    b"sk-ssh-ed25519@openssh.com": _check_ed25519_of_security_key,
    b"sk-ecdsa-sha2-nistp256@openssh.com": _check_ecdsa_of_security_key,
}


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
