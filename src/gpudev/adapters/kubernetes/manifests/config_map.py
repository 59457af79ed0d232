"""The start-up files of all dev servers, in one ConfigMap for each version of them."""

from __future__ import annotations

from gpudev.adapters.kubernetes.labels import COMPONENT, Json
from gpudev.adapters.kubernetes.manifests.metadata import make_metadata
from gpudev.adapters.kubernetes.startup import startup_digest, startup_files

STARTUP_COMPONENT = "startup"


def startup_name() -> str:
    return f"gpu-dev-startup-{startup_digest()}"


def make_startup(namespace: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": make_metadata(startup_name(), namespace, {COMPONENT: STARTUP_COMPONENT}),
        "immutable": True,
        "data": dict(startup_files()),
    }
