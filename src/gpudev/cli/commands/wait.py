"""`gpu-dev wait`, for scripts: go on when a reservation has come so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gpudev.cli.completing import complete_with
from gpudev.cli.durations import seconds_option
from gpudev.cli.errors import INTERRUPTED
from gpudev.cli.output import Output, json_option, pass_output, put
from gpudev.texts.vocabulary import TERMINAL, Status

if TYPE_CHECKING:
    from gpudev.client.session import Client
    from gpudev.wire.jobs import JobDetail

ACTIVE, ENDED, CLEAN = GOALS = ("active", "ended", "clean")


@click.command("wait")
@click.argument("reservation", metavar="ID", shell_complete=complete_with("reservations"))
@click.option(
    "--for",
    "goal",
    type=click.Choice(GOALS),
    default=ACTIVE,
    show_default=True,
    help="Until it can be used, until it is over, or until nothing is left of it.",
)
@click.option("--timeout", metavar="TIME", callback=seconds_option, help="At most: 90s, 10m, 2h.")
@json_option
@pass_output
@click.pass_context
def command(
    context: click.Context, output: Output, /, reservation: str, goal: str, timeout: float | None
) -> None:
    """Wait until a reservation is active, or over.

    ID is its id, the first characters of it (4 or more), or its name. The exit code is 6 if that takes
    longer than the timeout, and 1 if it ends without having been active.
    """
    from gpudev.cli.render.data import format_json
    from gpudev.client import session

    with session.connect() as client:
        try:
            job = _wait(client, client.get(reservation).job_id, goal, timeout)
        except KeyboardInterrupt:
            context.exit(INTERRUPTED)
    put(format_json(job) if output.as_json else f"{job.name}: {job.status}")


def _wait(client: Client, reservation_id: str, goal: str, timeout: float | None) -> JobDetail:
    if goal == CLEAN:
        return client.wait_until_clean(reservation_id, timeout=timeout)
    statuses = TERMINAL if goal == ENDED else {Status.ACTIVE}
    return client.wait_until(reservation_id, statuses, timeout=timeout)
