"""`gpu-dev config set`."""

from __future__ import annotations

import click

from gpudev.cli.examples import examples
from gpudev.cli.output import say


@click.command(
    "set",
    epilog=examples(
        "gpu-dev config set api_url https://gpu-dev.example.org", "gpu-dev config set github_user ada"
    ),
)
@click.argument("key")
@click.argument("value")
def command(key: str, value: str) -> None:
    """Set one. KEY is api_url, region or github_user."""
    from gpudev.client.config import normalise_url, read_settings, read_surroundings
    from gpudev.client.config_file import chosen_environment, set_value, write_config

    here = read_surroundings()
    before = read_settings(here)
    content = set_value(before, key, normalise_url(value) if key == "api_url" else value)
    write_config(here.config_file, content)
    if chosen_environment(content) != chosen_environment(before):
        say(f'The environment is "{chosen_environment(content)}" now.')
