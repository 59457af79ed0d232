"""Public SSH keys of every kind that GitHub takes, and whether a signature is one of theirs.

Keys of security keys (`sk-...`) sign more than the message: the application that they were made for, a
counter, and whether somebody touched them, which we insist on as OpenSSH does.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from gpudev.adapters.github.ssh_fields import Fields

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
