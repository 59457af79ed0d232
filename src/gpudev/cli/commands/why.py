"""`gpu-dev why`."""

from __future__ import annotations

import click

from gpudev.cli.completing import complete_with
from gpudev.cli.examples import examples
from gpudev.cli.output import Output, json_option, pass_output, put
from gpudev.cli.screen import find_width


@click.command("why", epilog=examples("gpu-dev why", "gpu-dev why train"))
@click.argument("reservation", metavar="[ID]", required=False, shell_complete=complete_with("reservations"))
@json_option
@pass_output
def command(output: Output, reservation: str | None) -> None:
    """Explain why a reservation waits, was slow, ended or failed.

    It is told from the events that were written down: the cause, what happened, where the time went, and
    what to type next. ID is its id, the first characters of it (4 or more), or its name; also of one that
    is over.
    """
    from gpudev.cli.render.data import format_json
    from gpudev.cli.render.folding import fold
    from gpudev.cli.render.times import read_now
    from gpudev.cli.render.why import encode_why, format_why
    from gpudev.cli.selection import get_meant
    from gpudev.cli.spelling import spell
    from gpudev.client import session

    with session.connect() as client:
        job = get_meant(client, reservation)
        events = client.list_events(job.job_id)
    now = read_now()
    if output.as_json:
        put(format_json(encode_why(job, events, now)))
    else:
        put(fold(spell(format_why(job, events, now)), find_width()))
