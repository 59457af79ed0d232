"""`gpu-dev status`."""

from __future__ import annotations

import click

from gpudev.cli.output import Output, json_option, pass_output, put
from gpudev.cli.screen import find_width


@click.command("status")
@json_option
@pass_output
def command(output: Output) -> None:
    """Show the whole cluster at a glance, and what one should know of it."""
    from gpudev.cli.render.availability import format_status
    from gpudev.cli.render.data import format_json
    from gpudev.client import session

    with session.connect() as client:
        status = client.status()
    put(format_json(status) if output.as_json else format_status(status, find_width()))
