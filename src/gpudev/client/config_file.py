"""The configuration file: how it is read and changed, and what becomes of its older form.

    {"environment": "prod",
     "github_user": "ada",
     "environments": {"prod": {"api_url": "https://gpu-dev.example.org", "region": "us-east-2"}}}

What belongs to a server stands in its environment, what belongs to the user beside them. Older clients wrote
`~/.gpu-dev-config`; while there is no file in the new place, what it says is taken over. It is left where
it is, for clients that still read it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpudev.client.errors import Usage
from gpudev.client.files import read_json_object, write_private

DEFAULT_ENVIRONMENT = "prod"
DEFAULT_REGIONS = {"prod": "us-east-2", "test": "us-west-1", "local": "us-east-2"}
"""The environments that everybody knows by name, and the region of each."""

OF_ENVIRONMENT = ("api_url", "region")
SOCKET = "socket"
"""A unix socket of the server at `api_url`, which `gpu-dev up` writes; it goes when the address changes."""
OF_USER = ("github_user",)
KEYS = (*OF_ENVIRONMENT, *OF_USER)
"""What can be set by hand; the environment has a command of its own."""

_TAKEN_OVER = ("environment", "region", "github_user", "api_url")


def read_config(config_file: Path, old_file: Path) -> dict[str, Any]:
    """The contents, taken over from the old file if there is only that; empty if there is neither."""
    if config_file.exists() or not old_file.exists():
        return read_json_object(config_file)
    old = read_json_object(old_file)
    content = {key: old[key] for key in _TAKEN_OVER if isinstance(old.get(key), str)}
    write_config(config_file, content)
    return content


def write_config(config_file: Path, content: Mapping[str, Any]) -> None:
    write_private(config_file, json.dumps(content, indent=2) + "\n")


def set_value(content: Mapping[str, Any], key: str, value: str) -> dict[str, Any]:
    """The contents with this value; without an environment chosen, that of production is."""
    if key in OF_USER:
        return {**content, key: value}
    _check_key(key)
    name = chosen_environment(content) or DEFAULT_ENVIRONMENT
    described = _without_socket(describe_environment(content, name), key)
    return _with_environment({**content, "environment": name}, name, {**described, key: value})


def unset_value(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Without this value, in the chosen environment and beside it, where older clients wrote it."""
    _check_key(key)
    kept = {name: value for name, value in content.items() if name != key}
    name = chosen_environment(content)
    described = describe_environment(content, name) if name else {}
    if name is None or key not in described:
        return kept
    rest = {each: described[each] for each in described if each != key}
    return _with_environment(kept, name, _without_socket(rest, key))


def choose_environment(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    """That environment from now on. One that nobody knows is refused, so that a mistyped name is noticed."""
    known = list_environments(content)
    if name not in known:
        raise Usage(
            f'There is no environment "{name}". There are {", ".join(known)}.',
            hint="Describe another with: gpu-dev setup --environment NAME --api-url URL",
        )
    return {**content, "environment": name}


def list_environments(content: Mapping[str, Any]) -> tuple[str, ...]:
    described = content.get("environments")
    own = described if isinstance(described, dict) else {}
    return tuple(dict.fromkeys([*DEFAULT_REGIONS, *own]))


def chosen_environment(content: Mapping[str, Any]) -> str | None:
    chosen = content.get("environment")
    return chosen if isinstance(chosen, str) else None


def describe_environment(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    described = content.get("environments")
    entry = described.get(name) if isinstance(described, dict) else None
    return dict(entry) if isinstance(entry, dict) else {}


def _with_environment(content: Mapping[str, Any], name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    described = content.get("environments")
    others = described if isinstance(described, dict) else {}
    return {**content, "environments": {**others, name: dict(entry)}}


def _without_socket(entry: Mapping[str, Any], changed: str) -> dict[str, Any]:
    return {key: entry[key] for key in entry if key != SOCKET or changed != "api_url"}


def _check_key(key: str) -> None:
    if key not in KEYS:
        raise Usage(f'There is no setting "{key}". There are {", ".join(KEYS)}.')
