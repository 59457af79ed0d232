"""The Secret of a dev server: its host keys, the authorized keys, and the user's variables.

We generate the host keys, so that they are known before anybody connects.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)

from gpudev.adapters.kubernetes.api_objects import Json
from gpudev.adapters.kubernetes.manifests.environment import secret_keys
from gpudev.adapters.kubernetes.manifests.metadata import (
    gang_hosts,
    make_metadata,
    reference_to,
    reservation_labels,
)
from gpudev.adapters.kubernetes.manifests.resources import GANG_HOSTS, GANG_KEY, host_key_name
from gpudev.domain.server import ServerSpec


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


@dataclass(frozen=True, slots=True)
class Keys:
    """What a dev server proves itself with, by rank; `gang` is what its members log in to each other with."""

    hosts: tuple[HostKey, ...]
    gang: HostKey | None = None


def make_secret(spec: ServerSpec, namespace: str, keys: Keys, service: Json) -> Json:
    """Nobody may list Secrets, so it hangs from the Service, which can be found, and goes with it."""
    metadata = make_metadata(spec.name, namespace, reservation_labels(spec.reservation_id, "keys"))
    metadata["ownerReferences"] = [reference_to(service)]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "Opaque",
        "stringData": {
            **{host_key_name(rank): key.private for rank, key in enumerate(keys.hosts)},
            "authorized_keys": "".join(f"{key}\n" for key in _let_in(spec, keys)),
            **_gang_files(spec, keys),
            **secret_keys(spec.env_vars),
        },
    }


def _let_in(spec: ServerSpec, keys: Keys) -> Iterator[str]:
    yield from spec.ssh_public_keys
    if keys.gang is not None:
        yield keys.gang.public


def _gang_files(spec: ServerSpec, keys: Keys) -> dict[str, str]:
    if keys.gang is None:
        return {}
    known = zip(gang_hosts(spec), keys.hosts, strict=True)
    return {GANG_KEY: keys.gang.private, GANG_HOSTS: "".join(f"{host} {key.public}\n" for host, key in known)}
