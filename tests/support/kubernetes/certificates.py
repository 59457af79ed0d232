"""A certificate authority for one cluster, the API server's certificate, and the key of service accounts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = timedelta(days=30)


def write_certificates(folder: Path, addresses: tuple[IPv4Address, ...]) -> None:
    """Fill the folder with ca.crt, api-server.crt and .key, service-accounts.key and .pub."""
    folder.mkdir(parents=True, exist_ok=True)
    authority_key, server_key, accounts_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    authority = _authority(authority_key)
    server = _server(server_key.public_key(), authority, authority_key, addresses)
    (folder / "ca.crt").write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    (folder / "api-server.crt").write_bytes(server.public_bytes(serialization.Encoding.PEM))
    _write_key(folder / "api-server.key", server_key)
    _write_key(folder / "service-accounts.key", accounts_key)
    (folder / "service-accounts.pub").write_bytes(
        accounts_key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )


def _authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = _name("gpu-dev test cluster")
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        _unsigned(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _server(
    key: ec.EllipticCurvePublicKey,
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
    addresses: tuple[IPv4Address, ...],
) -> x509.Certificate:
    names = [x509.DNSName("kubernetes.default.svc"), *(x509.IPAddress(address) for address in addresses)]
    uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        _unsigned(_name("kube-apiserver"), authority.subject, key)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(signer, critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    # An hour ago: the clocks of this machine's programs are one, but may be set back meanwhile.
    now = datetime.now(UTC) - timedelta(hours=1)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + _LIFETIME)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
