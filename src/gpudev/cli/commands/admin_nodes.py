"""`gpu-dev admin nodes`, `drain` and `undrain`."""

from __future__ import annotations

import click

from gpudev.cli.output import Listing, Output, format_options, json_option, pass_output, print_listing, put
from gpudev.cli.screen import find_width


@click.command("nodes")
@format_options
@pass_output
def nodes(output: Output) -> None:
    """List nodes: which take reservations, which are drained, and what runs on them."""
    from gpudev.cli.render.admin import format_nodes
    from gpudev.cli.render.times import read_now
    from gpudev.client import session

    with session.connect() as client:
        answer = client.nodes.list()
    names = tuple(node.name for node in answer.nodes)
    print_listing(Listing(answer, names, format_nodes(answer.nodes, read_now(), find_width())), output.format)


@click.command("drain")
@click.argument("node")
@click.option("--reason", default="", metavar="TEXT", help="Why, in one line. The owners read it.")
@json_option
@pass_output
def drain(output: Output, node: str, reason: str) -> None:
    """Take a node out of service: nothing new is placed there.

    Reservations there run on to their end and cannot be extended; their owners are told. Requests that wait
    for the node are planned anew. Back into service: gpu-dev admin undrain NODE
    """
    from gpudev.cli.render.admin import format_change
    from gpudev.cli.render.data import format_json
    from gpudev.cli.render.times import read_now
    from gpudev.client import session

    with session.connect() as client:
        changed = client.nodes.drain(node, reason)
    put(format_json(changed) if output.as_json else format_change(changed, read_now(), find_width()))


@click.command("undrain")
@click.argument("node")
@json_option
@pass_output
def undrain(output: Output, node: str) -> None:
    """Put a drained node back into service. Owners of what still runs there are told."""
    from gpudev.cli.render.data import format_json
    from gpudev.client import session

    with session.connect() as client:
        changed = client.nodes.undrain(node)
    put(format_json(changed) if output.as_json else changed.message)
