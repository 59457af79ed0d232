"""`gpu-dev admin undrain`."""

from __future__ import annotations

import click

from gpudev.cli.output import Output, json_option, pass_output, put


@click.command("undrain")
@click.argument("node")
@json_option
@pass_output
def command(output: Output, node: str) -> None:
    """Put a drained node back into service. Owners of what still runs there are told."""
    from gpudev.cli.render.data import format_json
    from gpudev.client import session

    with session.connect() as client:
        changed = client.nodes.undrain(node)
    put(format_json(changed) if output.as_json else changed.message)
