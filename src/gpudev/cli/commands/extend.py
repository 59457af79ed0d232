"""`gpu-dev extend`."""

from __future__ import annotations

import click

from gpudev.cli.completing import complete_with
from gpudev.cli.durations import hours_option
from gpudev.cli.examples import examples
from gpudev.cli.output import Output, json_option, pass_output, put


@click.command(
    "extend",
    epilog=examples(
        "gpu-dev extend 2",
        "gpu-dev extend train 1h30m",
    ),
)
@click.argument(
    "words", metavar="[ID] HOURS", nargs=-1, required=True, shell_complete=complete_with("reservations")
)
@click.option("--no-wait", is_flag=True, help="Do not wait until it is done.")
@json_option
@pass_output
@click.pass_context
def command(context: click.Context, output: Output, words: tuple[str, ...], *, no_wait: bool) -> None:
    """Give a reservation more time.

    HOURS is how much more: 2, 1.5, 90m or 1h30m. All extensions together bring a reservation to 48 hours at
    most, counted from its start. Without ID: your only active reservation, or the one that you choose.
    """
    from gpudev.cli.extending import extend
    from gpudev.cli.selection import get_active
    from gpudev.client import session

    *named, typed = words
    if len(named) > 1:
        raise click.UsageError("Say which reservation, and by how many hours: two words.", context)
    hours = hours_option(context, context.command.params[0], typed) or 0.0
    with session.connect() as client:
        meant = named[0] if named else get_active(client, None).job_id
        put(extend(client, meant, hours, output, wait=not no_wait))
