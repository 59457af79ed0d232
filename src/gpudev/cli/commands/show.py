"""`gpu-dev show`."""

from __future__ import annotations

import click

from gpudev.cli.completing import complete_with
from gpudev.cli.examples import examples
from gpudev.cli.output import Output, json_option, pass_output, put


@click.command(
    "show",
    epilog=examples(
        "gpu-dev show",
        "gpu-dev show train --json",
    ),
)
@click.argument("reservation", metavar="[ID]", required=False, shell_complete=complete_with("reservations"))
@json_option
@pass_output
def command(output: Output, reservation: str | None) -> None:
    """Show everything about one reservation.

    ID is its id, the first characters of it (4 or more), or its name. Without it: your only one that is not
    over, or the one that you choose.
    """
    from gpudev.cli.render.data import format_json
    from gpudev.cli.render.reservations import format_detail
    from gpudev.cli.render.times import read_now
    from gpudev.cli.render.usage import format_usage
    from gpudev.cli.selection import get_meant
    from gpudev.client import session

    with session.connect() as client:
        job = get_meant(client, reservation)
        usage = client.usage(job.job_id) if job.launched_at and not output.as_json else None
    line = format_usage(usage) if usage else None
    put(format_json(job) if output.as_json else format_detail(job, read_now(), usage=line))
