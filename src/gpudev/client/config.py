"""Where the server is and where our files are. The only module of the client that reads the environment.

The configuration is `gpu-dev/config.json` in the XDG configuration folder:

    {"environment": "local",
     "environments": {"local": {"api_url": "http://127.0.0.1:8321", "login_file": "/path/to/login"}}}

The address is looked for in `GPU_DEV_API_URL`, then in the chosen environment, then in a plain `api_url`; the
name at GitHub in `GPU_DEV_GITHUB_USER`, then in `github_user`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gpudev.client.errors import BrokenFile, Unreachable, Usage
from gpudev.client.files import read_json_object, write_private

DEFAULT_PORTS = {"http": 80, "https": 443}
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})


DEFAULT_REGION = "us-east-2"


@dataclass(frozen=True, slots=True)
class AwsPlace:
    """Which STS to sign a login for."""

    region: str = DEFAULT_REGION
    sts_endpoint: str | None = None
    """Instead of that of AWS in the region."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the process finds around it, read once from the environment."""

    home: Path
    config_file: Path
    api_url: str | None = None
    wants_plain_output: bool = False
    """No colour and no moving lines: `NO_COLOR` or `CI` is set, or the terminal is a dumb one."""
    aws: AwsPlace = AwsPlace()
    github_user: str | None = None

    @property
    def state_dir(self) -> Path:
        """The key we got from the server, and the SSH files of the reservations."""
        return self.home / ".gpu-dev"

    @property
    def credentials_file(self) -> Path:
        return self.state_dir / "credentials"

    @property
    def ssh_dir(self) -> Path:
        return self.home / ".ssh"


@dataclass(frozen=True, slots=True)
class Target:
    """A server and how to log in to it."""

    environment: str
    api_url: str
    login_file: Path | None = None
    """Of a server on this machine. Without it, one logs in by AWS."""
    aws: AwsPlace = AwsPlace()
    github_user: str | None = None
    """Who the user is at GitHub, for servers that want to know."""


def read_surroundings(environ: Mapping[str, str] = os.environ) -> Surroundings:
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    config_home = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    return Surroundings(
        home=home,
        config_file=config_home / "gpu-dev" / "config.json",
        api_url=environ.get("GPU_DEV_API_URL") or None,
        wants_plain_output=bool(environ.get("NO_COLOR") or environ.get("CI"))
        or environ.get("TERM") == "dumb",
        aws=AwsPlace(
            region=environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or DEFAULT_REGION,
            sts_endpoint=environ.get("AWS_ENDPOINT_URL_STS") or None,
        ),
        github_user=environ.get("GPU_DEV_GITHUB_USER") or None,
    )


def find_target(surroundings: Surroundings) -> Target:
    """The server that the user means."""
    content = read_json_object(surroundings.config_file)
    kept = content.get("github_user")
    github_user = surroundings.github_user or (kept if isinstance(kept, str) else None)
    return replace(_find_described(content, surroundings), aws=surroundings.aws, github_user=github_user)


def _find_described(content: Mapping[str, Any], surroundings: Surroundings) -> Target:
    targets = _list_environments(content, surroundings.config_file)
    if surroundings.api_url:
        return _target_at(normalise_url(surroundings.api_url), targets)
    chosen = content.get("environment")
    if chosen in targets:
        return targets[chosen]
    if isinstance(content.get("api_url"), str):
        return _target_at(normalise_url(content["api_url"]), targets)
    if chosen is not None:
        raise BrokenFile(
            f'The environment "{chosen}" is not described in {surroundings.config_file}.',
            hint="Set GPU_DEV_API_URL, or run a server on this machine with: gpu-dev up",
        )
    raise Unreachable(
        "No gpu-dev server is configured.",
        hint="Run one on this machine with: gpu-dev up. Or set GPU_DEV_API_URL to the address of one.",
        code="not_configured",
    )


def find_local_state_dir(surroundings: Surroundings | None = None) -> Path | None:
    """The state folder of the server on this machine that the user's commands talk to, if they do."""
    content = read_json_object((surroundings or read_surroundings()).config_file)
    environments = content.get("environments")
    local = environments.get("local") if isinstance(environments, dict) else None
    login_file = local.get("login_file") if isinstance(local, dict) else None
    return Path(login_file).parent if isinstance(login_file, str) else None


def write_environment(
    name: str, api_url: str, login_file: Path, surroundings: Surroundings | None = None
) -> str | None:
    """Describe an environment and choose it. Returns the one chosen before; everything else is kept."""
    config_file = (surroundings or read_surroundings()).config_file
    content = read_json_object(config_file)
    before = content.get("environment")
    environments = content.get("environments")
    described = environments if isinstance(environments, dict) else {}
    known = described.get(name)
    entry = known if isinstance(known, dict) else {}
    content["environment"] = name
    content["environments"] = {
        **described,
        name: {**entry, "api_url": normalise_url(api_url), "login_file": str(login_file)},
    }
    write_private(config_file, json.dumps(content, indent=2) + "\n")
    return before if isinstance(before, str) else None


def write_github_user(github_user: str, surroundings: Surroundings) -> None:
    """Remember who the user is at GitHub; everything else is kept."""
    content = {**read_json_object(surroundings.config_file), "github_user": github_user}
    write_private(surroundings.config_file, json.dumps(content, indent=2) + "\n")


def normalise_url(url: str) -> str:
    """The address without a slash at its end; refuses what is not an HTTP address."""
    parts = urlsplit(url)
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        raise Usage(
            f'"{url}" is not the address of a server.',
            hint="An address looks like http://127.0.0.1:8321 or https://gpu-dev.example.org.",
        )
    return url.rstrip("/")


def _list_environments(content: Mapping[str, Any], config_file: Path) -> dict[str, Target]:
    described = content.get("environments", {})
    if not isinstance(described, dict):
        raise BrokenFile(f'"environments" in {config_file} is not an object.', hint="Correct the file.")
    return {name: _read_environment(name, entry, config_file) for name, entry in described.items()}


def _read_environment(name: str, entry: object, config_file: Path) -> Target:
    api_url = entry.get("api_url") if isinstance(entry, dict) else None
    login_file = entry.get("login_file") if isinstance(entry, dict) else None
    if not isinstance(api_url, str):
        raise BrokenFile(f'The environment "{name}" in {config_file} has no "api_url".')
    return Target(name, normalise_url(api_url), Path(login_file) if isinstance(login_file, str) else None)


def _target_at(api_url: str, targets: Mapping[str, Target]) -> Target:
    """An address given by hand; if it is that of a known environment, its login goes with it."""
    known = (target for target in targets.values() if target.api_url == api_url)
    return next(known, Target("custom", api_url))
