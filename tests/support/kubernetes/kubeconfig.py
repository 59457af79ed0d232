"""Who may ask the API server, and the files by which a client says so."""

from __future__ import annotations

import base64
import json
import secrets
from dataclasses import dataclass
from pathlib import Path

API_PORT = 6443


@dataclass(frozen=True, slots=True)
class Identity:
    """A user that the API server knows by token."""

    user: str
    groups: tuple[str, ...]
    token: str


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the API server is, and the authority that vouches for it."""

    address: str
    authority: bytes


def make_identity(user: str, *groups: str) -> Identity:
    return Identity(user, groups, secrets.token_urlsafe(24))


def write_tokens(path: Path, identities: tuple[Identity, ...]) -> None:
    """The API server's list of users: token, name, id, groups."""
    lines = (f'{one.token},{one.user},{one.user},"{",".join(one.groups)}"' for one in identities)
    _write_secret(path, "\n".join([*lines, ""]))


def write_kubeconfig(path: Path, endpoint: Endpoint, token: str, namespace: str = "default") -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "test",
                "cluster": {
                    "server": endpoint.address,
                    "certificate-authority-data": base64.b64encode(endpoint.authority).decode(),
                },
            }
        ],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [
            {"name": "test", "context": {"cluster": "test", "user": "user", "namespace": namespace}},
        ],
        "current-context": "test",
    }
    # JSON is YAML, and needs no library.
    _write_secret(path, json.dumps(config, indent=2))
    return path


def _write_secret(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(text)
