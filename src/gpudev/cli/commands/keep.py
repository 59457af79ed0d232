"""`gpu-dev keep`."""

from __future__ import annotations

import click

from gpudev.cli.completing import complete_with
from gpudev.cli.durations import hours_option
from gpudev.cli.examples import examples
from gpudev.cli.output import Output, json_option, pass_output, put


@click.command(
    "keep",
    epilog=examples(
        'gpu-dev keep train 2h --reason "the data is still on its way"',
    ),
)
@click.argument("reservation", metavar="ID", shell_complete=complete_with("reservations"))
@click.argument("hours", metavar="HOURS", callback=hours_option)
@click.option("--reason", default="", help="Why; it is shown in the reservation's events.")
@json_option
@pass_output
def command(output: Output, reservation: str, hours: float, reason: str) -> None:
    """Keep a server that nobody uses at the moment.

    For HOURS (2h, 90m, 1.5) it is not ended for being idle. Its time ends when it ends.
    """
    from gpudev.cli.render.data import format_json
    from gpudev.client import session

    with session.connect() as client:
        asked = client.keep(reservation, hours, reason)
        client.wait_for_operation(asked.operation_id)
        job = client.get(asked.job_id)
    put(format_json(job) if output.as_json else asked.message)
