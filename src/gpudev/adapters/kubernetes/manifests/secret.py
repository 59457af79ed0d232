"""The Secret of a dev server: its host key, the keys that are let in, and the user's variables."""

from __future__ import annotations

from gpudev.adapters.kubernetes.labels import Json
from gpudev.adapters.kubernetes.manifests.environment import secret_keys
from gpudev.adapters.kubernetes.manifests.metadata import make_metadata, reference_to, reservation_labels
from gpudev.domain.server import ServerSpec


def make_secret(spec: ServerSpec, namespace: str, host_key: str, service: Json) -> Json:
    """Nobody may list Secrets, so it hangs from the Service, which can be found, and goes with it."""
    metadata = make_metadata(spec.name, namespace, reservation_labels(spec.reservation_id, "keys"))
    metadata["ownerReferences"] = [reference_to(service)]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "Opaque",
        "stringData": {
            "host_key": host_key,
            "authorized_keys": "".join(f"{key}\n" for key in spec.ssh_public_keys),
            **secret_keys(spec.env_vars),
        },
    }
