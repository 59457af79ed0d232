"""`gpu-dev logs`."""

from __future__ import annotations

import click

from gpudev.cli.completing import complete_with
from gpudev.cli.errors import INTERRUPTED
from gpudev.cli.examples import examples
from gpudev.cli.output import put


@click.command(
    "logs",
    epilog=examples(
        "gpu-dev logs -f",
        "gpu-dev logs train --tail 50",
    ),
)
@click.argument("reservation", metavar="[ID]", required=False, shell_complete=complete_with("reservations"))
@click.option("--tail", type=click.IntRange(0, 100_000), metavar="N", help="Only the last N lines.")
@click.option("-f", "--follow", is_flag=True, help="Go on until the dev server is gone; Ctrl-C ends it.")
@click.pass_context
def command(context: click.Context, /, reservation: str | None, tail: int | None, *, follow: bool) -> None:
    """Show what a dev server has written about its start and its SSH server.

    ID is its id, the first characters of it (4 or more), or its name. Without it: your only active one, or
    the one that you choose.
    """
    from gpudev.cli.selection import get_active
    from gpudev.client import session

    with session.connect() as client:
        meant = reservation or get_active(client, None).job_id
        try:
            for line in client.logs(meant, tail=tail, follow=follow):
                put(line)
        except KeyboardInterrupt:
            context.exit(INTERRUPTED)
