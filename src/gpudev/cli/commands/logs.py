"""`gpu-dev logs`."""

from __future__ import annotations

import click

from gpudev.cli.errors import INTERRUPTED
from gpudev.cli.output import put


@click.command("logs")
@click.argument("reservation", metavar="ID")
@click.option("--tail", type=click.IntRange(0, 100_000), metavar="N", help="Only the last N lines.")
@click.option("-f", "--follow", is_flag=True, help="Go on until the dev server is gone; Ctrl-C ends it.")
@click.pass_context
def command(context: click.Context, /, reservation: str, tail: int | None, *, follow: bool) -> None:
    """Show what a dev server has written about its start and its SSH server.

    ID is its id, the first characters of it (4 or more), or its name.
    """
    from gpudev.client import session

    with session.connect() as client:
        try:
            for line in client.logs(reservation, tail=tail, follow=follow):
                put(line)
        except KeyboardInterrupt:
            context.exit(INTERRUPTED)
