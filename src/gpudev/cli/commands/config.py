"""`gpu-dev config`: see and change what is configured on this machine. No server is asked.

What is configured, and where each value comes from, is told by functions of the file's contents and the
surroundings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from gpudev.cli.lazy import Entry, LazyGroup
from gpudev.cli.output import Listing, Output, examples, format_options, pass_output, print_listing, put, say
from gpudev.cli.render.table import format_table
from gpudev.cli.screen import find_width
from gpudev.client.config import CUSTOM, Surroundings, find_region
from gpudev.client.config_file import DEFAULT_ENVIRONMENT, chosen_environment, describe_environment

command = LazyGroup(
    {
        "show": Entry("config:show", "Show each setting, and where its value comes from."),
        "set": Entry("config:set_", "Set api_url, region or github_user."),
        "unset": Entry("config:unset", "Forget one of them."),
        "environment": Entry("config:environment", "Choose prod, test, local or your own."),
        "ssh-include": Entry("config:ssh_include", "Let plain ssh know your dev servers."),
    },
    {},
    name="config",
    help="""Settings of yours on this machine.

    api_url and region belong to the chosen environment, github_user to you. Environment variables come
    before them: GPU_DEV_API_URL, AWS_REGION, AWS_DEFAULT_REGION and GPU_DEV_GITHUB_USER.
    """,
)


@click.command("show")
@format_options
@pass_output
def show(output: Output) -> None:
    """Show each setting, and where its value comes from."""
    from gpudev.client.config import read_settings, read_surroundings

    here = read_surroundings()
    settings = list_settings(read_settings(here), here)
    names = tuple(each.name for each in settings)
    table = format_settings(settings, find_width())
    print_listing(Listing(encode_settings(settings), names, table), output.format)


@click.command(
    "set",
    epilog=examples(
        "gpu-dev config set api_url https://gpu-dev.example.org", "gpu-dev config set github_user ada"
    ),
)
@click.argument("key")
@click.argument("value")
def set_(key: str, value: str) -> None:
    """Set one. KEY is api_url, region or github_user."""
    from gpudev.client.config import normalise_url, read_settings, read_surroundings
    from gpudev.client.config_file import chosen_environment, set_value, write_config

    here = read_surroundings()
    before = read_settings(here)
    content = set_value(before, key, normalise_url(value) if key == "api_url" else value)
    write_config(here.config_file, content)
    if chosen_environment(content) != chosen_environment(before):
        say(f'The environment is "{chosen_environment(content)}" now.')


@click.command("unset")
@click.argument("key")
def unset(key: str) -> None:
    """Forget one. KEY is api_url, region or github_user."""
    from gpudev.client.config import read_settings, read_surroundings
    from gpudev.client.config_file import unset_value, write_config

    here = read_surroundings()
    write_config(here.config_file, unset_value(read_settings(here), key))


@click.command(
    "environment", epilog=examples("gpu-dev config environment", "gpu-dev config environment test")
)
@click.argument("name", required=False)
def environment(name: str | None) -> None:
    """Choose the environment: prod, test, local or one of your own. Without NAME, list them."""
    from gpudev.client.config import read_settings, read_surroundings
    from gpudev.client.config_file import (
        choose_environment,
        chosen_environment,
        describe_environment,
        list_environments,
        write_config,
    )

    here = read_surroundings()
    content = read_settings(here)
    if name is None:
        chosen = chosen_environment(content)
        for each in list_environments(content):
            address = describe_environment(content, each).get("api_url", "no address")
            put(f"{'*' if each == chosen else ' '} {each}  {address}")
        return
    write_config(here.config_file, choose_environment(content, name))
    if "api_url" not in describe_environment(content, name) and not content.get("api_url"):
        start = "gpu-dev up" if name == "local" else "gpu-dev config set api_url URL"
        say(f'The environment "{name}" has no address yet. Next: {start}')


@click.command("ssh-include")
@click.option("--remove", is_flag=True, help="Take the line out again.")
def ssh_include(*, remove: bool) -> None:
    """Let plain ssh, scp and editors know your dev servers, as gpu-dev-NAME and gpu-dev-ID.

    It puts one line at the beginning of ~/.ssh/config, and of Cursor's ~/.cursor/ssh_config where Cursor
    is. Doing it again changes nothing.
    """
    from gpudev.client import ssh_include
    from gpudev.client.config import read_surroundings

    surroundings = read_surroundings()
    line = ssh_include.include_line(surroundings)
    changed = ssh_include.exclude(surroundings) if remove else ssh_include.include(surroundings)
    for file in ssh_include.list_files(surroundings):
        if remove:
            put(f"{file}: removed." if file in changed else f"{file}: it was not there.")
        else:
            put(f"{file}: added {line}" if file in changed else f"{file}: it is there already.")


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
