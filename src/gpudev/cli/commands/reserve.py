"""`gpu-dev reserve` and `start`: ask, wait with live progress, and say how to connect."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gpudev.cli.completion import complete_with
from gpudev.cli.errors import INTERRUPTED
from gpudev.cli.output import Output, examples, json_option, pass_output, put, say
from gpudev.cli.program_name import spell
from gpudev.cli.request_options import (
    NO_DISK,
    Fields,
    Size,
    pairs_option,
    request_options,
    take_fields,
    take_size,
)
from gpudev.cli.screen import can_ask, can_draw
from gpudev.cli.time_options import moment_option
from gpudev.texts.vocabulary import EventKind, Status

if TYPE_CHECKING:
    from gpudev.cli.start_wait import Wait
    from gpudev.client.config import Surroundings
    from gpudev.client.session import Client
    from gpudev.wire.jobs import JobDetail, SubmitRequest


@dataclass(frozen=True, slots=True)
class Manner:
    """How the command goes about it; none of it is sent."""

    dry_run: bool
    yes: bool
    no_wait: bool
    no_interactive: bool
    verbose: bool

    @property
    def may_ask(self) -> bool:
        return not self.yes and not self.no_interactive and can_ask()


class Draft(NamedTuple):
    """A request that is about to be sent, and what its reader is to know of it."""

    request: SubmitRequest
    simulated: bool
    is_answered: bool
    """A person was asked for some of it, and is shown the plan before anything is done."""


@click.command(
    "reserve",
    epilog=examples(
        "gpu-dev reserve",
        "gpu-dev reserve -t h100 -g 2 --for 2h30m",
        "gpu-dev reserve -t t4 --disk work --name train --no-wait",
    ),
)
@request_options(
    hours_help="For how long.  [default: 4]", disk_help="Your home; made if new.  [default: the disk default]"
)
@click.option("--no-persist", is_flag=True, help="A home that is not kept, like --disk none.")
@click.option(
    "--disk-size",
    "disk_size_gb",
    type=int,
    metavar="GB",
    help="Size of a disk that is made.  [default: 100]",
)
@pairs_option("-l", "--node-label", "node_labels", help="Only such nodes.")
@click.option(
    "--at",
    "start_at",
    metavar="TIME",
    callback=moment_option,
    help='Book: 14:00, "tomorrow 14:00", "in 2h".',
)
@click.option("--dry-run", is_flag=True, help="Only say when it would start, and what would start sooner.")
@click.option("-y", "--yes", is_flag=True, help="Take the defaults instead of asking.")
@click.option("--no-wait", is_flag=True, help="Do not wait until it is ready.")
@click.option("--no-interactive", is_flag=True, help="Never ask, even on a terminal.")
@click.option("-v", "--verbose", is_flag=True, help="Say when each step happened, and how long it took.")
@json_option
@pass_output
@click.pass_context
def command(context: click.Context, output: Output, /, *, no_persist: bool, **given: Any) -> None:
    """Ask for GPUs and wait until the dev server answers on SSH.

    With nothing said, a person at a terminal is asked for everything, and shown the plan before it is asked
    for. If there is no room now, the request keeps its place in the queue; Ctrl-C asks whether to leave it
    there or to cancel it. Your public SSH keys are let in: those in ~/.ssh and in your agent. If you have
    none, a pair is made in ~/.gpu-dev.
    """
    manner = Manner(**{each.name: given.pop(each.name) for each in fields(Manner)})
    size, wanted = take_size(context, given), take_fields(given)
    if no_persist and "disk_name" in wanted:
        raise click.UsageError("--disk and --no-persist do not go together: give one of them.", context)
    if no_persist:
        wanted["disk_name"] = NO_DISK
    _reserve(context, size, wanted, manner, output)


@click.command(
    "start",
    epilog=examples("gpu-dev start train", "gpu-dev start train -g 8", "gpu-dev start train -t cpu-x86"),
)
@click.argument("reservation", metavar="ID", shell_complete=complete_with("reservations"))
@click.option("-g", "--gpus", type=int, metavar="N", help="Another number of GPUs.")
@click.option(
    "-t", "--type", "gpu_type", default="", metavar="TYPE", help="Another type; a CPU type has no GPUs."
)
@click.option("--distributed", is_flag=True, help="The GPUs may be on several whole nodes.")
@click.option("--no-wait", is_flag=True, help="Do not wait until it is ready.")
@click.option("-v", "--verbose", is_flag=True, help="Say when each step happened, and how long it took.")
@json_option
@pass_output
@click.pass_context
def start(
    context: click.Context,
    output: Output,
    /,
    reservation: str,
    gpus: int | None,
    gpu_type: str,
    **given: bool,
) -> None:
    """Start a stopped reservation again.

    It waits in the queue like a new one and goes on with its disk, its settings and the time that is left.
    What is not said stays as it was.
    """
    from gpudev.cli.stages import StageTimes
    from gpudev.cli.start_wait import Wait
    from gpudev.client import session, ssh
    from gpudev.client.config import read_surroundings
    from gpudev.wire.jobs import StartRequest

    manner = Manner(
        dry_run=False, yes=True, no_wait=given["no_wait"], no_interactive=False, verbose=given["verbose"]
    )
    with session.connect(read_surroundings()) as client:
        wanted = StartRequest(gpu_type=gpu_type, gpu_count=gpus, distributed=given["distributed"])
        job = client.start(reservation, wanted)
        short = ssh.id8(job.job_id)
        begins = "is active already" if job.status == Status.ACTIVE else "is started again"
        say(f"{job.name} {begins}: reservation {short}.")
        if not manner.no_wait:
            told = client.list_events(job.job_id)
            begun = [event.number for event in told if event.kind == EventKind.RESUMED]
            times = StageTimes(client.surroundings.stage_times_file, client.target.api_url)
            wait = Wait(
                client, job.job_id, job.gpu_type, times, verbose=manner.verbose, after=max(begun, default=0)
            )
            job = _wait(context, wait, client.surroundings)
    _tell_result(job, short, client, manner, output)


def _reserve(context: click.Context, size: Size, wanted: Fields, manner: Manner, output: Output) -> None:
    from gpudev.client import session
    from gpudev.client.config import read_surroundings

    surroundings = read_surroundings()
    with session.connect(surroundings) as client:
        draft = _draft(client, size, wanted, manner)
        if manner.dry_run:
            _preview(client, draft.request, output)
            return
        if draft.is_answered and not _confirm(client, draft):
            say("Nothing was asked for.")
            raise click.Abort
        short, job = _send(context, client, draft, manner)
    _tell_result(job, short, client, manner, output)


def _send(context: click.Context, client: Client, draft: Draft, manner: Manner) -> tuple[str, JobDetail]:
    """Ask for it, and wait if that is wanted."""
    from gpudev.cli.render.offers import format_request
    from gpudev.cli.stages import StageTimes
    from gpudev.cli.start_wait import Wait
    from gpudev.client import ssh

    answer = client.reserve(draft.request)
    short = ssh.id8(answer.reservation_id)
    say(f"Asked for {format_request(draft.request, simulated=draft.simulated)}: reservation {short}.")
    if answer.warning:
        say(f"Warning: {answer.warning}")
    if manner.no_wait:
        return short, client.get(answer.reservation_id)
    times = StageTimes(client.surroundings.stage_times_file, client.target.api_url)
    wait = Wait(client, answer.reservation_id, draft.request.gpu_type, times, verbose=manner.verbose)
    return short, _wait(context, wait, client.surroundings)


def _tell_result(job: JobDetail, short: str, client: Client, manner: Manner, output: Output) -> None:
    from gpudev.cli.render.data import format_json

    ready = "" if manner.no_wait else _ready(job, client.surroundings, client.target.api_url)
    if output.as_json:
        put(format_json(job))
    elif manner.no_wait:
        _tell_id(short)
    else:
        put(ready)


def _tell_id(short: str) -> None:
    """A script takes it from stdout; a person has read it already, and is told what to do with it."""
    if sys.stdout.isatty():
        say(spell(f"See it with: gpu-dev show {short}"))
    else:
        put(short)


def _preview(client: Client, request: SubmitRequest, output: Output) -> None:
    from gpudev.cli.render.cluster import format_preview
    from gpudev.cli.render.data import format_json
    from gpudev.cli.render.times import read_now

    answer = client.preview(request)
    put(format_json(answer) if output.as_json else format_preview(answer, read_now()))


def _confirm(client: Client, draft: Draft) -> bool:
    """Show the plan to a person who was asked for it, and when it would start."""
    from gpudev.cli.render.offers import format_plan
    from gpudev.cli.render.times import read_now
    from gpudev.cli.terminal.prompts import ask_yes

    preview = client.preview(draft.request)
    say(format_plan(draft.request, preview, read_now(), simulated=draft.simulated))
    return ask_yes("Reserve it?", default=True)


def _draft(client: Client, size: Size, wanted: Fields, manner: Manner) -> Draft:
    """What was typed, and on a terminal the answers to what was not."""
    from gpudev.cli.choices import choose, is_simulated
    from gpudev.client.submit_request import complete_request

    offers = client.availability().availability
    says_nothing = size == (None, None, None)
    is_answered = manner.may_ask and (says_nothing or (size.gpu_type is None and len(offers) > 1))
    if is_answered:
        from gpudev.cli.questions import ask_request

        request = ask_request(size, offers)
    else:
        request = choose(size, offers)
    request = complete_request(replace(request, **wanted), client.surroundings)
    if request.disk_name is None and manner.may_ask:
        request = replace(request, disk_name=_ask_disk(client, request, is_answered=is_answered))
    return Draft(request, is_simulated(request, offers), is_answered)


def _ask_disk(client: Client, request: SubmitRequest, *, is_answered: bool) -> str | None:
    """Who types everything is asked only if the default disk is taken, which would leave the home empty.

    What no disk would make possible is refused before the question.
    """
    from gpudev.cli.questions import DEFAULT_DISK, ask_disk

    disks = client.disks.list().disks
    is_taken = any(disk.disk_name == DEFAULT_DISK and disk.in_use for disk in disks)
    if not is_answered and not is_taken:
        return None
    client.preview(replace(request, disk_name=NO_DISK))
    return ask_disk(disks)


def _wait(context: click.Context, wait: Wait, surroundings: Surroundings) -> JobDetail:
    """Until it is active. Ctrl-C ends the waiting, not the request, unless a person says otherwise."""
    from gpudev.cli.progress import open_progress

    while True:
        try:
            with open_progress(live=can_draw(surroundings)) as progress:
                return wait.until_active(progress)
        except KeyboardInterrupt:
            if not _goes_on(wait):
                context.exit(INTERRUPTED)


def _goes_on(wait: Wait) -> bool:
    """Whether the waiting does, after Ctrl-C; a second one leaves."""
    from gpudev.client import ssh

    short = ssh.id8(wait.reservation_id)
    answer = 0
    if can_ask():
        from gpudev.cli.terminal.prompts import ask_one

        options = ("leave it: it goes on without you", "cancel it", "wait on")
        try:
            answer = ask_one(f"What about reservation {short}?", options)
        except (click.Abort, KeyboardInterrupt):
            answer = 0
    if answer == 0:
        say(f"Reservation {short} goes on. See it with: gpu-dev show {short}")
        say(f"Cancel it with: gpu-dev cancel {short}")
    elif answer == 1:
        wait.cancel()
        say(f"Reservation {short} is being cancelled.")
    return answer == 2  # noqa: PLR2004 - the last of the options


def _ready(job: JobDetail, surroundings: Surroundings, api_url: str) -> str:
    """Leaves the SSH files behind, so that the commands it names work."""
    from gpudev.cli.render.reservations import format_ready
    from gpudev.cli.render.times import read_now
    from gpudev.client.ssh import write_config
    from gpudev.client.ssh_keys import list_identity_files

    config = write_config(surroundings, api_url, job, list_identity_files(surroundings))
    return spell(format_ready(job, read_now(), config))
