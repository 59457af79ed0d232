"""The files that start a dev server inside its pod, and the ConfigMap of each version of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from gpudev.adapters.kubernetes.api_objects import COMPONENT, Json
from gpudev.adapters.kubernetes.manifests.metadata import make_metadata

START = "start.sh"
_SUFFIXES = (".sh", "sshd_config")
STARTUP_COMPONENT = "startup"


@cache
def startup_files() -> Mapping[str, str]:
    entries = sorted(files(__name__).iterdir(), key=lambda entry: entry.name)
    return {entry.name: entry.read_text("utf-8") for entry in entries if entry.name.endswith(_SUFFIXES)}


@cache
def startup_digest() -> str:
    """Tells one version of the files from another; all pods of a version share them."""
    content = "\0".join(f"{name}\0{text}" for name, text in startup_files().items())
    return hashlib.sha256(content.encode()).hexdigest()[:10]


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
