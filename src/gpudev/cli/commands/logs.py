"""`gpu-dev logs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gpudev.cli.completion import complete_with
from gpudev.cli.errors import INTERRUPTED
from gpudev.cli.output import examples, put, say
from gpudev.texts.vocabulary import Status

if TYPE_CHECKING:
    from gpudev.client.session import Client
    from gpudev.wire.jobs import JobDetail


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
    """Show what a dev server has written about its start and its SSH server, and what its command has.

    The command is that of gpu-dev submit. Of a reservation that is over, only the end of the command's output
    is kept. With --follow it goes on until the command is over; without a command, until the dev server is
    gone. ID is its id, the first characters of it (4 or more), or its name. Without it: your only active one,
    or the one that you choose.
    """
    from gpudev.cli.selection import get_active
    from gpudev.client import session

    with session.connect() as client:
        job = client.get(reservation) if reservation else get_active(client, None)
        try:
            _show(client, job, tail, follow=follow)
        except KeyboardInterrupt:
            context.exit(INTERRUPTED)


def _show(client: Client, job: JobDetail, tail: int | None, *, follow: bool) -> None:
    """The server's own log comes from the API; the command's output, while it can be reached, by SSH."""
    from gpudev.cli.job_run import write_output
    from gpudev.client.dev_server import Box
    from gpudev.client.submission import find_offset, pass_output

    box = Box(client, job) if job.status == Status.ACTIVE else None
    offset = find_offset(box, tail) if box else None
    is_silent = True
    for line in client.logs(job.job_id, tail=tail, follow=follow and offset is None):
        is_silent = False
        put(line)
    if box is not None and offset is not None:
        pass_output(box, offset, write_output, follow=follow)
    elif is_silent:
        from gpudev.client.ssh import id8

        say(f"{id8(job.job_id)} has written nothing.")
