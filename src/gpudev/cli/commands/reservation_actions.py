"""What an owner does with a reservation: `gpu-dev wait`, `extend`, `edit`, `keep`, `stop` and `cancel`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gpudev.cli.completion import complete_with
from gpudev.cli.errors import INTERRUPTED
from gpudev.cli.output import Output, confirm, examples, json_option, pass_output, put, say
from gpudev.cli.screen import can_ask
from gpudev.cli.time_options import hours_option, seconds_option
from gpudev.texts.vocabulary import LIVE, TERMINAL, Status

if TYPE_CHECKING:
    from gpudev.client.session import Client
    from gpudev.wire.jobs import JobDetail

ACTIVE, ENDED, CLEAN = GOALS = ("active", "ended", "clean")


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
def extend(context: click.Context, output: Output, words: tuple[str, ...], *, no_wait: bool) -> None:
    """Give a reservation more time.

    HOURS is how much more: 2, 1.5, 90m or 1h30m. All extensions together bring a reservation to 48 hours at
    most, counted from its start. Without ID: your only active reservation, or the one that you choose.
    """
    from gpudev.cli.selection import get_active
    from gpudev.client import session

    *named, typed = words
    if len(named) > 1:
        raise click.UsageError("Say which reservation, and by how many hours: two words.", context)
    hours = hours_option(context, context.command.params[0], typed) or 0.0
    with session.connect() as client:
        meant = named[0] if named else get_active(client, None).job_id
        put(_extend(client, meant, hours, output, wait=not no_wait))


def _extend(client: Client, reservation: str, hours: float, output: Output, *, wait: bool) -> str:
    """What to print of it."""
    from gpudev.cli.render.data import format_json
    from gpudev.cli.render.times import format_wait, read_now

    asked = client.extend(reservation, hours)
    if wait:
        client.wait_for_operation(asked.operation_id)
    job = client.get(asked.job_id)
    if output.as_json:
        return format_json(job)
    if not wait or job.expires_at is None:
        return asked.message
    return f"{job.name} ends {format_wait(job.expires_at, read_now())}."


@click.command("edit", epilog=examples("gpu-dev edit --extend 2", "gpu-dev edit train --extend 1h30m"))
@click.argument("reservation", metavar="[ID]", required=False, shell_complete=complete_with("reservations"))
@click.option("--extend", "hours", metavar="TIME", callback=hours_option, help="More time: 2, 90m or 1h30m.")
@click.option("--no-wait", is_flag=True, help="Do not wait until it is done.")
@json_option
@pass_output
@click.pass_context
def edit(
    context: click.Context, output: Output, reservation: str | None, *, hours: float | None, no_wait: bool
) -> None:
    """Change a reservation that is active.

    Without ID: your only active reservation, or the one that you choose. Without a change, a person is
    asked for it.
    """
    from gpudev.cli.selection import get_active
    from gpudev.client import session

    if hours is None and not can_ask():
        raise click.UsageError("Say what to change: --extend TIME.", context)
    with session.connect() as client:
        job = get_active(client, reservation)
        if hours is None:
            from gpudev.cli.terminal.prompts import ask_hours

            hours = ask_hours(f"How much more time for {job.name}", "1")
        put(_extend(client, job.job_id, hours, output, wait=not no_wait))


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
def keep(output: Output, reservation: str, hours: float, reason: str) -> None:
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


@click.command("stop", epilog=examples("gpu-dev stop train", "gpu-dev stop train --yes"))
@click.argument("reservation", metavar="[ID]", required=False, shell_complete=complete_with("reservations"))
@click.option("--no-wait", is_flag=True, help="Do not wait until it is done.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
@pass_output
@click.pass_context
def stop(
    context: click.Context, output: Output, reservation: str | None, *, no_wait: bool, yes: bool
) -> None:
    """End a dev server for now and keep the reservation.

    Its GPUs and its disk are free at once, the disk with a snapshot. Name, settings and the time that is left
    are kept, and gpu-dev start goes on with them. /workspace is lost, and so is a home without a disk.
    What nobody starts again ends after 7 days. Without ID: your only active reservation, or the one that you
    choose.
    """
    from gpudev.cli.render.data import format_json
    from gpudev.cli.selection import get_active
    from gpudev.client import session, ssh
    from gpudev.client.config import read_surroundings

    if not yes and not can_ask():
        raise click.UsageError("There is nobody to ask here: stop it with --yes.", context)
    surroundings = read_surroundings()
    with session.connect(surroundings) as client:
        job = get_active(client, reservation)
        if not yes and job.status == Status.ACTIVE and not confirm(_ask_about_loss(job)):
            say("Nothing was stopped.")
            context.exit(1)
        asked = client.stop(job.job_id)
        ssh.delete_config(surroundings, job.job_id)
        if not no_wait:
            client.wait_for_operation(asked.operation_id)
        job = client.get(job.job_id)
    done = f"{job.name}: {job.status}. {job.current_detailed_status} {job.hint}".replace(
        " ID", f" {job.name}"
    )
    put(format_json(job) if output.as_json else asked.message if no_wait else done)


def _ask_about_loss(job: JobDetail) -> str:
    if job.disk_name:
        return f"/workspace is lost; disk {job.disk_name} is kept. Stop {job.name}?"
    return f"{job.name} has no disk: everything on it is lost. Stop it?"


@click.command(
    "cancel",
    epilog=examples(
        "gpu-dev cancel",
        "gpu-dev cancel train",
        "gpu-dev cancel --all --yes",
    ),
)
@click.argument("reservations", metavar="[ID]...", nargs=-1, shell_complete=complete_with("reservations"))
@click.option("--all", "everything", is_flag=True, help="All of yours that are not over.")
@click.option("--no-wait", is_flag=True, help="Do not wait until everything is cleaned up.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
@pass_output
@click.pass_context
def cancel(
    context: click.Context,
    output: Output,
    reservations: tuple[str, ...],
    *,
    everything: bool,
    no_wait: bool,
    yes: bool,
) -> None:
    """End reservations and give their GPUs back.

    ID is an id, the first characters of one (4 or more), or a name. Without any, you choose from a list.
    What runs on the dev servers is stopped.
    """
    from gpudev.client import session

    if everything and reservations:
        raise click.UsageError("IDs and --all do not go together: say one of them.", context)
    if not everything and not reservations and not can_ask():
        raise click.UsageError("Say which: one or more IDs, or --all.", context)
    if everything and not yes and not can_ask():
        raise click.UsageError("There is nobody to ask here: cancel all with --all --yes.", context)
    with session.connect() as client:
        live = _without_ended(_list_meant(client, reservations, everything=everything))
        if live and can_ask() and not yes and not _confirm(live):
            say("Nothing was cancelled.")
            context.exit(1)
        try:
            ended = _cancel(client, live, wait=not no_wait)
        except KeyboardInterrupt:
            say("\nThe cancellation goes on. See it with: gpu-dev list --all")
            context.exit(INTERRUPTED)
    _print_result(ended, output)


def _list_meant(client: Client, given: Sequence[str], *, everything: bool) -> Sequence[JobDetail]:
    """The named ones, all, or those that are chosen; an unknown name ends it before any is cancelled."""
    from gpudev.cli.selection import choose_several

    if given:
        return [client.get(name) for name in given]
    live = client.list(statuses=LIVE, limit=500).jobs
    if not live:
        say("You have no reservations.")
    return live if everything else choose_several(live, "Cancel which?")


def _without_ended(jobs: Sequence[JobDetail]) -> Sequence[JobDetail]:

    for job in jobs:
        if job.status in TERMINAL:
            say(f"{job.name} is over already ({job.status}).")
    return [job for job in jobs if job.status not in TERMINAL]


def _confirm(jobs: Sequence[JobDetail]) -> bool:
    from gpudev.cli.render.reservations import format_list
    from gpudev.cli.render.times import read_now

    say(format_list(jobs, read_now()))
    question = "Cancel it?" if len(jobs) == 1 else f"Cancel these {len(jobs)}?"
    return confirm(question)


def _cancel(client: Client, jobs: Sequence[JobDetail], *, wait: bool) -> Sequence[JobDetail]:
    """All are asked for before the first is waited for, so that they end side by side."""
    from gpudev.client import ssh
    from gpudev.client.config import read_surroundings

    surroundings = read_surroundings()
    for job in jobs:
        client.cancel(job.job_id)
        ssh.delete_config(surroundings, job.job_id)
        say(f"Cancelling {job.name} ({ssh.id8(job.job_id)}).")
    if not wait:
        return [client.get(job.job_id) for job in jobs]
    return [client.wait_until_clean(job.job_id) for job in jobs]


def _print_result(jobs: Sequence[JobDetail], output: Output) -> None:
    from gpudev.cli.render.data import format_json

    if output.as_json:
        put(format_json(jobs))
        return
    for job in jobs:
        put(f"{job.name}: {job.status}")


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
def wait(
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
