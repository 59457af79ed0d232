"""`gpu-dev config environment`."""

from __future__ import annotations

import click

from gpudev.cli.examples import examples
from gpudev.cli.output import put, say


@click.command(
    "environment", epilog=examples("gpu-dev config environment", "gpu-dev config environment test")
)
@click.argument("name", required=False)
def command(name: str | None) -> None:
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
