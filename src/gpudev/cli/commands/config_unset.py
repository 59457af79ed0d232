"""`gpu-dev config unset`."""

from __future__ import annotations

import click


@click.command("unset")
@click.argument("key")
def command(key: str) -> None:
    """Forget one. KEY is api_url, region or github_user."""
    from gpudev.client.config import read_settings, read_surroundings
    from gpudev.client.config_file import unset_value, write_config

    here = read_surroundings()
    write_config(here.config_file, unset_value(read_settings(here), key))
