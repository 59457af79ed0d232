"""The Secret of a dev server: its host key, the keys that are let in, and the user's variables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpudev.adapters.kubernetes.host_key import HostKey
from gpudev.adapters.kubernetes.labels import Json
from gpudev.adapters.kubernetes.manifests.environment import secret_keys
from gpudev.adapters.kubernetes.manifests.gang import gang_hosts
from gpudev.adapters.kubernetes.manifests.metadata import make_metadata, reference_to, reservation_labels
from gpudev.adapters.kubernetes.manifests.volumes import GANG_HOSTS, GANG_KEY, host_key_name
from gpudev.domain.server import ServerSpec


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
