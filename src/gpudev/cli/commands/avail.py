"""`gpu-dev avail`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gpudev.cli.examples import examples
from gpudev.cli.output import Output, format_options, pass_output
from gpudev.cli.screen import find_width

if TYPE_CHECKING:
    from gpudev.cli.listing import Listing
    from gpudev.client.session import Client


@click.command(
    "avail",
    epilog=examples(
        "gpu-dev avail --watch",
        "gpu-dev avail -o json",
    ),
)
@click.option("--watch", "watched", is_flag=True, help="Show it again whenever it changes, until Ctrl-C.")
@format_options
@pass_output
def command(output: Output, *, watched: bool) -> None:
    """Show which GPUs are free, and how long the others take.

    AT ONCE is the most GPUs that one reservation can get right now; WAITING counts requests in the queue.
    Simulated GPUs are called so: they do not exist.
    """
    from gpudev.cli.listing import format_listing, print_listing
    from gpudev.client import session
    from gpudev.client.config import read_surroundings

    surroundings = read_surroundings()
    with session.connect(surroundings) as client:
        if watched:
            from gpudev.cli.watching import watch

            watch(lambda: format_listing(_list(client), output.format), surroundings)
        print_listing(_list(client), output.format)


def _list(client: Client) -> Listing:
    from gpudev.cli.listing import Listing
    from gpudev.cli.render.availability import format_availability

    answer = client.availability()
    table = format_availability(answer.availability.values(), find_width())
    return Listing(answer, tuple(answer.availability), table)
