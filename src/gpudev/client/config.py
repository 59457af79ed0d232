"""Where the server is and where our files are. The only module of the client that reads the environment.

The configuration is `gpu-dev/config.json` in the XDG configuration folder; `config_file` tells what is in it.

The address is looked for in `GPU_DEV_API_URL`, then in the chosen environment, then in a plain `api_url`; the
name at GitHub in `GPU_DEV_GITHUB_USER`, then in `github_user`; the region in `AWS_REGION`,
`AWS_DEFAULT_REGION`, the chosen environment, a plain `region`, and last by the name of the environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gpudev.client.config_file import (
    DEFAULT_ENVIRONMENT,
    DEFAULT_REGIONS,
    SOCKET,
    chosen_environment,
    describe_environment,
    read_config,
    write_config,
)
from gpudev.client.errors import BrokenFile, Unreachable, Usage

_LOCALTIME = Path("/etc/localtime")
DEFAULT_PORTS = {"http": 80, "https": 443}
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})


CUSTOM = "custom"
"""The environment of an address that no other one has."""
DEFAULT_REGION = DEFAULT_REGIONS[DEFAULT_ENVIRONMENT]


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
    is_automated: bool = False
    """`CI` is set: whatever the terminal looks like, nobody sits there."""
    region: str | None = None
    """Of AWS; None leaves it to the configuration."""
    sts_endpoint: str | None = None
    github_user: str | None = None
    github_url: str = "https://github.com"
    """Where the published keys of its users are."""

    @property
    def old_config_file(self) -> Path:
        return self.home / ".gpu-dev-config"

    @property
    def state_dir(self) -> Path:
        """The key we got from the server, and the SSH files of the reservations."""
        return self.home / ".gpu-dev"

    @property
    def credentials_file(self) -> Path:
        return self.state_dir / "credentials"

    @property
    def stage_times_file(self) -> Path:
        return self.state_dir / "stage-times.json"

    @property
    def ssh_dir(self) -> Path:
        return self.home / ".ssh"


@dataclass(frozen=True, slots=True)
class ProxyVariables:
    """The variables that name HTTP proxies; `client.proxies` tells what they mean."""

    https: str = ""
    http: str = ""
    all: str = ""
    no_proxy: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """A server and how to log in to it."""

    environment: str
    api_url: str
    login_file: Path | None = None
    """Of a server on this machine. Without it, one logs in by AWS."""
    socket_file: Path | None = None
    """A unix socket of a server on this machine, used instead of the network while it is there."""
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
        is_automated=bool(environ.get("CI")),
        region=environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or None,
        sts_endpoint=environ.get("AWS_ENDPOINT_URL_STS") or None,
        github_user=environ.get("GPU_DEV_GITHUB_USER") or None,
        github_url=(environ.get("GPU_DEV_GITHUB_URL") or "https://github.com").rstrip("/"),
    )


def find_time_zone(environ: Mapping[str, str] = os.environ, localtime: Path = _LOCALTIME) -> str | None:
    """The IANA name of this machine's zone; None where neither `TZ` nor the link has one."""
    given = environ.get("TZ")
    try:
        named = str(localtime.readlink()) if given is None else given.removeprefix(":")
    except OSError:
        return None
    name = named.rpartition("/zoneinfo/")[2]
    return name if re.fullmatch(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}", name) else None


def read_proxy_variables(environ: Mapping[str, str] = os.environ) -> ProxyVariables:
    def read(name: str) -> str:
        return environ.get(name) or environ.get(name.upper()) or ""

    return ProxyVariables(read("https_proxy"), read("http_proxy"), read("all_proxy"), read("no_proxy"))


def find_target(surroundings: Surroundings) -> Target:
    """The server that the user means."""
    content = read_settings(surroundings)
    kept = content.get("github_user")
    github_user = surroundings.github_user or (kept if isinstance(kept, str) else None)
    found = _find_described(content, surroundings)
    # An address given by hand says nothing of a region; the environment that is chosen does.
    named = found.environment if found.environment != CUSTOM else chosen_environment(content) or CUSTOM
    aws = AwsPlace(find_region(content, surroundings, named), surroundings.sts_endpoint)
    return replace(found, aws=aws, github_user=github_user)


def read_settings(surroundings: Surroundings) -> dict[str, Any]:
    """What the configuration file says."""
    return read_config(surroundings.config_file, surroundings.old_config_file)


def find_region(content: Mapping[str, Any], surroundings: Surroundings, environment: str) -> str:
    named = (describe_environment(content, environment).get("region"), content.get("region"))
    kept = next((region for region in named if isinstance(region, str)), None)
    return surroundings.region or kept or DEFAULT_REGIONS.get(environment, DEFAULT_REGION)


def _find_described(content: Mapping[str, Any], surroundings: Surroundings) -> Target:
    targets = _list_environments(content, surroundings.config_file)
    if surroundings.api_url:
        return _target_at(normalise_url(surroundings.api_url), targets)
    chosen = chosen_environment(content)
    if chosen in targets:
        return targets[chosen]
    if isinstance(content.get("api_url"), str):
        plain = _target_at(normalise_url(content["api_url"]), targets)
        return replace(plain, environment=chosen) if chosen and plain.environment == CUSTOM else plain
    if chosen is not None:
        raise BrokenFile(
            f'The environment "{chosen}" has no address in {surroundings.config_file}.',
            hint="Run a server on this machine with: gpu-dev up"
            if chosen == "local"
            else "Set its address with: gpu-dev config set api_url URL",
            code="no_address",
        )
    raise Unreachable(
        "No gpu-dev server is configured.",
        hint="Run one on this machine with: gpu-dev up. Or say where one is with: gpu-dev setup",
        code="not_configured",
    )


def find_local_state_dir(surroundings: Surroundings | None = None) -> Path | None:
    """The state folder of the server on this machine that the user's commands talk to, if they do."""
    content = read_settings(surroundings or read_surroundings())
    environments = content.get("environments")
    local = environments.get("local") if isinstance(environments, dict) else None
    login_file = local.get("login_file") if isinstance(local, dict) else None
    return Path(login_file).parent if isinstance(login_file, str) else None


def write_environment(
    name: str,
    api_url: str,
    login_file: Path,
    surroundings: Surroundings | None = None,
    socket_file: Path | None = None,
) -> str | None:
    """Describe an environment and choose it. Returns the one chosen before; everything else is kept."""
    here = surroundings or read_surroundings()
    content = read_settings(here)
    before = content.get("environment")
    environments = content.get("environments")
    described = environments if isinstance(environments, dict) else {}
    known = described.get(name)
    kept = {key: known[key] for key in known if key != SOCKET} if isinstance(known, dict) else {}
    entry = {**kept, "api_url": normalise_url(api_url), "login_file": str(login_file)}
    content["environment"] = name
    content["environments"] = {
        **described,
        name: {**entry, SOCKET: str(socket_file)} if socket_file else entry,
    }
    write_config(here.config_file, content)
    return before if isinstance(before, str) else None


def write_github_user(github_user: str, surroundings: Surroundings) -> None:
    """Remember who the user is at GitHub; everything else is kept."""
    write_config(surroundings.config_file, {**read_settings(surroundings), "github_user": github_user})


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
    # One without an address may still have other settings; that it cannot be used is said when it is chosen.
    return {
        name: _read_environment(name, entry, config_file)
        for name, entry in described.items()
        if not isinstance(entry, dict) or "api_url" in entry
    }


def _read_environment(name: str, entry: object, config_file: Path) -> Target:
    api_url = entry.get("api_url") if isinstance(entry, dict) else None
    login_file = entry.get("login_file") if isinstance(entry, dict) else None
    socket_file = entry.get(SOCKET) if isinstance(entry, dict) else None
    if not isinstance(api_url, str):
        raise BrokenFile(f'The environment "{name}" in {config_file} has no "api_url".')
    return Target(name, normalise_url(api_url), _path(login_file), _path(socket_file))


def _path(entry: object) -> Path | None:
    return Path(entry) if isinstance(entry, str) else None


def _target_at(api_url: str, targets: Mapping[str, Target]) -> Target:
    """An address given by hand; if it is that of a known environment, its login goes with it."""
    known = (target for target in targets.values() if target.api_url == api_url)
    return next(known, Target(CUSTOM, api_url))
