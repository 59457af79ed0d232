"""`gpu-dev cancel`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gpudev.cli.completing import complete_with
from gpudev.cli.errors import INTERRUPTED
from gpudev.cli.examples import examples
from gpudev.cli.output import Output, confirm, json_option, pass_output, put, say
from gpudev.cli.screen import can_ask
from gpudev.texts.vocabulary import LIVE, TERMINAL

if TYPE_CHECKING:
    from gpudev.client.session import Client
    from gpudev.wire.jobs import JobDetail


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
def command(
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
