"""`gpu-dev extend`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gpudev.cli.durations import hours_option
from gpudev.cli.examples import examples
from gpudev.cli.output import Output, json_option, pass_output, put

if TYPE_CHECKING:
    from gpudev.wire.jobs import JobDetail


@click.command(
    "extend",
    epilog=examples(
        "gpu-dev extend 2",
        "gpu-dev extend train 1h30m",
    ),
)
@click.argument("words", metavar="[ID] HOURS", nargs=-1, required=True)
@click.option("--no-wait", is_flag=True, help="Do not wait until it is done.")
@json_option
@pass_output
@click.pass_context
def command(context: click.Context, output: Output, words: tuple[str, ...], *, no_wait: bool) -> None:
    """Give a reservation more time.

    HOURS is how much more: 2, 1.5, 90m or 1h30m. All extensions together bring a reservation to 48 hours at
    most, counted from its start. Without ID: your only active reservation, or the one that you choose.
    """
    from gpudev.cli.render.data import format_json
    from gpudev.cli.selection import get_active
    from gpudev.client import session

    *named, typed = words
    if len(named) > 1:
        raise click.UsageError("Say which reservation, and by how many hours: two words.", context)
    hours = hours_option(context, context.command.params[0], typed) or 0.0
    with session.connect() as client:
        meant = named[0] if named else get_active(client, None).job_id
        asked = client.extend(meant, hours)
        if not no_wait:
            client.wait_for_operation(asked.operation_id)
        job = client.get(asked.job_id)
    put(format_json(job) if output.as_json else _format_end(job, asked.message, is_done=not no_wait))


def _format_end(job: JobDetail, message: str, *, is_done: bool) -> str:
    from gpudev.cli.render.times import format_wait, read_now

    if not is_done or job.expires_at is None:
        return message
    return f"{job.name} ends {format_wait(job.expires_at, read_now())}."
