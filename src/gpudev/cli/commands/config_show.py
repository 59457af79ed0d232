"""`gpu-dev config show`."""

from __future__ import annotations

import click

from gpudev.cli.output import Output, format_options, pass_output
from gpudev.cli.screen import find_width


@click.command("show")
@format_options
@pass_output
def command(output: Output) -> None:
    """Show each setting, and where its value comes from."""
    from gpudev.cli.listing import Listing, print_listing
    from gpudev.cli.render.settings import encode_settings, format_settings, list_settings
    from gpudev.client.config import read_settings, read_surroundings

    here = read_surroundings()
    settings = list_settings(read_settings(here), here)
    names = tuple(each.name for each in settings)
    table = format_settings(settings, find_width())
    print_listing(Listing(encode_settings(settings), names, table), output.format)
