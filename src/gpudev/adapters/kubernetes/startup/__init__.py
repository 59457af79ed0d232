"""The files that start a dev server inside its pod, as they are shipped."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

START = "start.sh"
_SUFFIXES = (".sh", "sshd_config")


@cache
def startup_files() -> Mapping[str, str]:
    entries = sorted(files(__name__).iterdir(), key=lambda entry: entry.name)
    return {entry.name: entry.read_text("utf-8") for entry in entries if entry.name.endswith(_SUFFIXES)}


@cache
def startup_digest() -> str:
    """Tells one version of the files from another; all pods of a version share them."""
    content = "\0".join(f"{name}\0{text}" for name, text in startup_files().items())
    return hashlib.sha256(content.encode()).hexdigest()[:10]
