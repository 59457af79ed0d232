"""`gpu-dev config`: see and change what is configured on this machine. No server is asked."""

from __future__ import annotations

import click

from gpudev.cli.lazy import Entry, LazyGroup
from gpudev.cli.output import Listing, Output, examples, format_options, pass_output, print_listing, put, say
from gpudev.cli.screen import find_width

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
    from gpudev.cli.render.settings import encode_settings, format_settings, list_settings
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
