"""What is configured and where each value comes from. Pure: the file's contents and the surroundings in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpudev.cli.render.table import format_table
from gpudev.client.config import CUSTOM, Surroundings, find_region
from gpudev.client.config_file import DEFAULT_ENVIRONMENT, chosen_environment, describe_environment

_FILE = "the configuration"
_NOWHERE = "nowhere"


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    value: str
    source: str
    """An environment variable, the file, or why it is the default."""


def list_settings(content: Mapping[str, Any], surroundings: Surroundings) -> tuple[Setting, ...]:
    return (
        _environment(content, surroundings),
        _api_url(content, surroundings),
        _region(content, surroundings),
        _github_user(content, surroundings),
        Setting("config_file", str(surroundings.config_file), "the home folder"),
        Setting("credentials_file", str(surroundings.credentials_file), "the home folder"),
    )


def format_settings(settings: tuple[Setting, ...], width: int | None = None) -> str:
    rows = [(each.name, each.value or "-", each.source) for each in settings]
    return format_table(("SETTING", "VALUE", "FROM"), rows, width=width)


def encode_settings(settings: tuple[Setting, ...]) -> dict[str, object]:
    return {each.name: {"value": each.value, "source": each.source} for each in settings}


def _environment(content: Mapping[str, Any], surroundings: Surroundings) -> Setting:
    chosen = chosen_environment(content)
    if surroundings.api_url:
        return Setting("environment", chosen or CUSTOM, "GPU_DEV_API_URL comes before it")
    return Setting("environment", chosen or "", _FILE if chosen else _NOWHERE)


def _api_url(content: Mapping[str, Any], surroundings: Surroundings) -> Setting:
    if surroundings.api_url:
        return Setting("api_url", surroundings.api_url, "GPU_DEV_API_URL")
    chosen = chosen_environment(content)
    described = describe_environment(content, chosen).get("api_url") if chosen else None
    found = described or content.get("api_url")
    return Setting("api_url", str(found), _FILE) if found else Setting("api_url", "", _NOWHERE)


def _region(content: Mapping[str, Any], surroundings: Surroundings) -> Setting:
    environment = chosen_environment(content) or DEFAULT_ENVIRONMENT
    region = find_region(content, surroundings, environment)
    if surroundings.region:
        return Setting("region", region, "AWS_REGION or AWS_DEFAULT_REGION")
    is_kept = "region" in describe_environment(content, environment) or "region" in content
    return Setting("region", region, _FILE if is_kept else f"the default of {environment}")


def _github_user(content: Mapping[str, Any], surroundings: Surroundings) -> Setting:
    if surroundings.github_user:
        return Setting("github_user", surroundings.github_user, "GPU_DEV_GITHUB_USER")
    kept = content.get("github_user")
    return Setting("github_user", str(kept), _FILE) if kept else Setting("github_user", "", _NOWHERE)
