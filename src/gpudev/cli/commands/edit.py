"""`gpu-dev edit`."""

from __future__ import annotations

import click

from gpudev.cli.completing import complete_with
from gpudev.cli.durations import hours_option
from gpudev.cli.examples import examples
from gpudev.cli.output import Output, json_option, pass_output, put


@click.command("edit", epilog=examples("gpu-dev edit --extend 2", "gpu-dev edit train --extend 1h30m"))
@click.argument("reservation", metavar="[ID]", required=False, shell_complete=complete_with("reservations"))
@click.option("--extend", "hours", metavar="TIME", callback=hours_option, help="More time: 2, 90m or 1h30m.")
@click.option("--no-wait", is_flag=True, help="Do not wait until it is done.")
@json_option
@pass_output
@click.pass_context
def command(
    context: click.Context, output: Output, reservation: str | None, *, hours: float | None, no_wait: bool
) -> None:
    """Change a reservation that is active.

    Without ID: your only active reservation, or the one that you choose. Without a change, a person is
    asked for it.
    """
    from gpudev.cli.extending import extend
    from gpudev.cli.screen import can_ask
    from gpudev.cli.selection import get_active
    from gpudev.client import session

    if hours is None and not can_ask():
        raise click.UsageError("Say what to change: --extend TIME.", context)
    with session.connect() as client:
        job = get_active(client, reservation)
        if hours is None:
            from gpudev.cli.terminal.asking import ask_hours

            hours = ask_hours(f"How much more time for {job.name}", "1")
        put(extend(client, job.job_id, hours, output, wait=not no_wait))
