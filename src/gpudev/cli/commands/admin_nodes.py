"""`gpu-dev admin nodes`."""

from __future__ import annotations

import click

from gpudev.cli.output import Output, format_options, pass_output
from gpudev.cli.screen import find_width


@click.command("nodes")
@format_options
@pass_output
def command(output: Output) -> None:
    """List nodes: which take reservations, which are drained, and what runs on them."""
    from gpudev.cli.listing import Listing, print_listing
    from gpudev.cli.render.nodes import format_nodes
    from gpudev.cli.render.times import read_now
    from gpudev.client import session

    with session.connect() as client:
        answer = client.nodes.list()
    names = tuple(node.name for node in answer.nodes)
    print_listing(Listing(answer, names, format_nodes(answer.nodes, read_now(), find_width())), output.format)
