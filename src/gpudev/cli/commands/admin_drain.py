"""`gpu-dev admin drain`."""

from __future__ import annotations

import click

from gpudev.cli.output import Output, json_option, pass_output, put
from gpudev.cli.screen import find_width


@click.command("drain")
@click.argument("node")
@click.option("--reason", default="", metavar="TEXT", help="Why, in one line. The owners read it.")
@json_option
@pass_output
def command(output: Output, node: str, reason: str) -> None:
    """Take a node out of service: nothing new is placed there.

    Reservations there run on to their end and cannot be extended; their owners are told. Requests that wait
    for the node are planned anew. Back into service: gpu-dev admin undrain NODE
    """
    from gpudev.cli.render.data import format_json
    from gpudev.cli.render.nodes import format_change
    from gpudev.cli.render.times import read_now
    from gpudev.client import session

    with session.connect() as client:
        changed = client.nodes.drain(node, reason)
    put(format_json(changed) if output.as_json else format_change(changed, read_now(), find_width()))
