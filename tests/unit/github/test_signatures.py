"""Signatures that the real `ssh-keygen -Y sign` makes are believed, and nothing else is."""

from __future__ import annotations

import base64
import hashlib
import struct
from pathlib import Path

import asyncssh
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from gpudev.adapters.github.ssh_signatures import MAX_SIGNATURE, SshSignatures, is_signed_by, read_envelope
from gpudev.domain.errors import Unauthenticated
from tests.support.ssh_signing import make_ssh_key, ssh_sign

SERVER, MESSAGE = "gpu-dev@gpu.example.org", "k3GsP0-challenge"
SIGNATURES = SshSignatures(frozenset({SERVER, "gpu-dev@gpu"}))
KINDS = {
    "ed25519": ("-t", "ed25519"),
    "rsa": ("-t", "rsa", "-b", "2048"),
    "ecdsa-256": ("-t", "ecdsa", "-b", "256"),
    "ecdsa-384": ("-t", "ecdsa", "-b", "384"),
    "ecdsa-521": ("-t", "ecdsa", "-b", "521"),
}


class Signer:
    def __init__(self, path: Path, *options: str) -> None:
        self.path = path
        self.line = make_ssh_key(path, *options)

    def sign(self, message: str = MESSAGE, namespace: str = SERVER, *options: str) -> str:
        return ssh_sign(self.path, message, namespace, *options)


@pytest.fixture(scope="module")
def ada(tmp_path_factory: pytest.TempPathFactory) -> Signer:
    return Signer(tmp_path_factory.mktemp("ada") / "id_ed25519")


@pytest.fixture(scope="module")
def signature(ada: Signer) -> str:
    return ada.sign()


def refusal(signature: str, *keys: str, message: str = MESSAGE) -> str:
    with pytest.raises(Unauthenticated) as caught:
        SIGNATURES.check(signature, message.encode(), keys)
    return caught.value.code


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_every_kind_of_key_can_sign(tmp_path: Path, ada: Signer, options: tuple[str, ...]) -> None:
    signer = Signer(tmp_path / "key", *options)
    SIGNATURES.check(signer.sign(), MESSAGE.encode(), (ada.line, f"{signer.line} with a comment"))
    assert refusal(signer.sign("another"), signer.line) == "github_signature_wrong"


@pytest.mark.parametrize("name", ["sha256", "sha512"])
def test_both_hashes_are_known(ada: Signer, name: str) -> None:
    signed = ada.sign(MESSAGE, SERVER, "-O", f"hashalg={name}")
    assert read_envelope(signed).hash_name == name.encode()
    SIGNATURES.check(signed, MESSAGE.encode(), (ada.line,))


def test_any_of_the_servers_names_will_do(ada: Signer) -> None:
    SIGNATURES.check(ada.sign(namespace="gpu-dev@gpu"), MESSAGE.encode(), (ada.line,))


@pytest.mark.parametrize("namespace", ["gpu-dev@evil.example", "file", "git", "gpu-dev", "GPU-DEV@gpu"])
def test_what_was_signed_for_another_purpose_is_refused(ada: Signer, namespace: str) -> None:
    assert refusal(ada.sign(namespace=namespace), ada.line) == "github_other_server"


def test_a_key_that_is_not_published_proves_nothing(tmp_path: Path, ada: Signer, signature: str) -> None:
    other = make_ssh_key(tmp_path / "other")
    assert refusal(signature, other) == "github_key_unknown"
    assert refusal(signature) == "github_key_unknown"


def test_an_rsa_signature_with_sha1_is_refused(tmp_path: Path) -> None:
    line = make_ssh_key(tmp_path / "rsa", *KINDS["rsa"])
    key = asyncssh.read_private_key(str(tmp_path / "rsa"))

    def signed_with(algorithm: bytes) -> str:
        envelope = read_envelope(ssh_sign(tmp_path / "rsa", MESSAGE, SERVER))
        data = envelope.signed_bytes(MESSAGE.encode())
        parts = _texts(envelope.public_key, SERVER.encode(), b"", b"sha512", key.sign(data, algorithm))
        return _armour(b"SSHSIG" + struct.pack(">I", 1) + parts)

    SIGNATURES.check(signed_with(b"rsa-sha2-256"), MESSAGE.encode(), (line,))
    assert refusal(signed_with(b"ssh-rsa"), line) == "github_signature_wrong"


class SecurityKey:
    """What a FIDO key and OpenSSH make together; no such device is here, so it is put together by hand."""

    kind = b"sk-ssh-ed25519@openssh.com"

    def __init__(self) -> None:
        self._private = Ed25519PrivateKey.generate()

    @property
    def public_key(self) -> bytes:
        return _texts(self.kind, self._private.public_key().public_bytes_raw(), b"ssh:")

    def sign(self, data: bytes, flags: bytes = b"\1", counter: bytes = b"\0\0\0\7") -> bytes:
        application, digest = hashlib.sha256(b"ssh:").digest(), hashlib.sha256(data).digest()
        return _texts(self.kind, self._private.sign(application + flags + counter + digest)) + flags + counter


class EcdsaSecurityKey(SecurityKey):
    kind = b"sk-ecdsa-sha2-nistp256@openssh.com"

    def __init__(self) -> None:
        self._ecdsa = ec.generate_private_key(ec.SECP256R1())

    @property
    def public_key(self) -> bytes:
        uncompressed = (Encoding.X962, PublicFormat.UncompressedPoint)
        point = self._ecdsa.public_key().public_bytes(*uncompressed)
        return _texts(self.kind, b"nistp256", point, b"ssh:")

    def sign(self, data: bytes, flags: bytes = b"\1", counter: bytes = b"\0\0\0\7") -> bytes:
        application, digest = hashlib.sha256(b"ssh:").digest(), hashlib.sha256(data).digest()
        signed = self._ecdsa.sign(application + flags + counter + digest, ec.ECDSA(hashes.SHA256()))
        numbers = (number.to_bytes(33) for number in decode_dss_signature(signed))
        return _texts(self.kind, _texts(*numbers)) + flags + counter


@pytest.mark.parametrize("device", [SecurityKey, EcdsaSecurityKey], ids=["ed25519", "ecdsa"])
def test_a_security_key_can_sign_if_somebody_touches_it(device: type[SecurityKey]) -> None:
    token = device()
    signed = token.sign(b"data")
    assert is_signed_by(token.public_key, signed, b"data")
    line = f"{token.kind.decode()} {base64.b64encode(token.public_key).decode()}"
    # Another implementation agrees that this is what such a key makes.
    assert asyncssh.import_public_key(line).verify(b"data", signed)
    assert not is_signed_by(token.public_key, signed, b"other data")
    assert not is_signed_by(token.public_key, token.sign(b"data", flags=b"\0"), b"data")
    assert not is_signed_by(token.public_key, signed[:-1] + b"\x08", b"data")
    assert not is_signed_by(token.public_key, signed + b"\0", b"data")
    assert not is_signed_by(device().public_key, signed, b"data")


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_no_key_and_no_signature_do_harm(key: bytes, signature: bytes) -> None:
    assert not is_signed_by(key, signature, b"data")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "words",
        "-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----",
        "-----BEGIN SSH SIGNATURE-----\nAAA\n-----END SSH SIGNATURE-----",
        f"-----BEGIN SSH SIGNATURE-----\n{'A' * MAX_SIGNATURE}\n-----END SSH SIGNATURE-----",
    ],
    ids=["empty", "words", "nothing-inside", "not-base64", "too-long"],
)
def test_what_is_no_signature_cannot_be_read(ada: Signer, text: str) -> None:
    assert refusal(text, ada.line) == "github_signature_malformed"


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: b"SSHSIX" + data[6:],
        lambda data: data[:9] + b"\2" + data[10:],
        lambda data: data.replace(b"sha512", b"sha999"),
    ],
    ids=["cut", "longer", "other-kind", "other-version", "other-hash"],
)
def test_an_envelope_is_read_strictly(ada: Signer, signature: str, change: object) -> None:
    assert callable(change)
    assert refusal(_armour(change(_unarmour(signature))), ada.line) == "github_signature_malformed"


@given(st.data())
def test_a_changed_byte_is_always_refused(ada: Signer, signature: str, data: st.DataObject) -> None:
    raw = bytearray(_unarmour(signature))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    assert refusal(_armour(bytes(raw)), ada.line).startswith("github_")


@given(st.binary(max_size=300))
def test_no_bytes_at_all_do_harm(ada: Signer, raw: bytes) -> None:
    assert refusal(_armour(b"SSHSIG\0\0\0\1" + raw), ada.line).startswith("github_")


def _texts(*parts: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)


def _armour(raw: bytes) -> str:
    return f"-----BEGIN SSH SIGNATURE-----\n{base64.encodebytes(raw).decode()}-----END SSH SIGNATURE-----\n"


def _unarmour(text: str) -> bytes:
    return base64.b64decode("".join(text.splitlines()[1:-1]))
