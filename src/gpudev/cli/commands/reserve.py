"""`gpu-dev reserve`: ask, wait with live progress, and say how to connect."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from gpudev.cli.completing import complete_with
from gpudev.cli.durations import hours_option
from gpudev.cli.errors import INTERRUPTED
from gpudev.cli.examples import examples
from gpudev.cli.moments import moment_option
from gpudev.cli.output import Output, json_option, pass_output, put, say
from gpudev.cli.screen import can_ask, can_draw
from gpudev.cli.spelling import spell

if TYPE_CHECKING:
    from gpudev.cli.choices import Choice
    from gpudev.cli.waiting import Wait
    from gpudev.client.config import Surroundings
    from gpudev.client.session import Client
    from gpudev.wire.jobs import JobDetail, SubmitRequest


@dataclass(frozen=True, slots=True)
class Wish:
    """What was typed."""

    gpus: int | None
    gpu_type: str | None
    hours: float | None
    length: float | None
    name: str | None
    env: dict[str, str]
    distributed: bool
    dockerimage: str | None
    disk: str | None
    no_persist: bool
    disk_size: int | None
    node_label: dict[str, str]
    at: datetime | None
    dry_run: bool
    yes: bool
    no_wait: bool
    no_interactive: bool
    verbose: bool

    @property
    def may_ask(self) -> bool:
        return not self.yes and not self.no_interactive and can_ask()

    @property
    def says_nothing(self) -> bool:
        return self.gpu_type is None and self.gpus is None and self.total_hours is None

    @property
    def total_hours(self) -> float | None:
        return self.length if self.hours is None else self.hours


def _parse_pairs(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    for name, separator, _ in pairs:
        if not separator or not name:
            raise click.BadParameter(f'"{name}" has no value. Write NAME=VALUE.', context, parameter)
    return {name: value for name, _, value in pairs}


@click.command(
    "reserve",
    epilog=examples(
        "gpu-dev reserve",
        "gpu-dev reserve -t h100 -g 2 --for 2h30m",
        "gpu-dev reserve -t t4 --disk work --name train --no-wait",
    ),
)
@click.option("-g", "--gpus", type=int, help="How many GPUs.  [default: 1]")
@click.option(
    "-t",
    "--gpu-type",
    metavar="TYPE",
    shell_complete=complete_with("types"),
    help="Which kind; gpu-dev avail lists them.",
)
@click.option("-H", "--hours", type=float, help="For how long.  [default: 4]")
@click.option("--for", "length", metavar="TIME", callback=hours_option, help="The same, as 2h30m or 90m.")
@click.option("-n", "--name", help="A name of your own for it.")
@click.option(
    "--env", metavar="K=V", multiple=True, callback=_parse_pairs, help="Set this there. Repeatable."
)
@click.option("-d", "--distributed", is_flag=True, help="The GPUs are those of several whole nodes.")
@click.option("--dockerimage", metavar="NAME", help="An image of your own, where the cluster can run it.")
@click.option(
    "--disk",
    metavar="NAME|none",
    shell_complete=complete_with("disks"),
    help="Your home; made if new.  [default: the disk default]",
)
@click.option("--no-persist", is_flag=True, help="A home that is not kept, like --disk none.")
@click.option("--disk-size", type=int, metavar="GB", help="Size of a disk that is made.  [default: 100]")
@click.option(
    "-l", "--node-label", metavar="K=V", multiple=True, callback=_parse_pairs, help="Only such nodes."
)
@click.option("--at", metavar="TIME", callback=moment_option, help='Book: 14:00, "tomorrow 14:00", "in 2h".')
@click.option("--dry-run", is_flag=True, help="Only say when it would start, and what would start sooner.")
@click.option("-y", "--yes", is_flag=True, help="Take the defaults instead of asking.")
@click.option("--no-wait", is_flag=True, help="Do not wait until it is ready.")
@click.option("--no-interactive", is_flag=True, help="Never ask, even on a terminal.")
@click.option("-v", "--verbose", is_flag=True, help="Say when each step happened, and how long it took.")
@json_option
@pass_output
@click.pass_context
def command(context: click.Context, output: Output, /, **given: Any) -> None:
    """Ask for GPUs and wait until the dev server answers on SSH.

    With nothing said, a person at a terminal is asked for everything, and shown the plan before it is asked
    for. If there is no room now, the request keeps its place in the queue; Ctrl-C asks whether to leave it
    there or to cancel it. Your public SSH keys are let in: those in ~/.ssh and in your agent. If you have
    none, a pair is made in ~/.gpu-dev.
    """
    wish = Wish(**given)
    if wish.hours is not None and wish.length is not None:
        raise click.UsageError("--hours and --for say the same: give one of them.", context)
    if wish.disk is not None and wish.no_persist:
        raise click.UsageError("--disk and --no-persist do not go together: give one of them.", context)
    _reserve(context, wish, output)


def _reserve(context: click.Context, wish: Wish, output: Output) -> None:
    from gpudev.cli.render.data import format_json
    from gpudev.cli.waiting import Wait
    from gpudev.client import session, ssh
    from gpudev.client.config import read_surroundings
    from gpudev.client.stage_times import StageTimes

    surroundings = read_surroundings()
    with session.connect(surroundings) as client:
        choice = _choose(wish, client, surroundings)
        request = _request(wish, choice, surroundings)
        if wish.dry_run:
            _preview(client, request, output)
            return
        if choice.is_answered and not _confirm(client, choice, request):
            say("Nothing was asked for.")
            raise click.Abort
        answer = client.reserve(request)
        short = ssh.id8(answer.reservation_id)
        say(f"Asked for {_describe(choice)}: reservation {short}.")
        if answer.warning:
            say(f"Warning: {answer.warning}")
        if wish.no_wait:
            job = client.get(answer.reservation_id)
        else:
            times = StageTimes(surroundings.stage_times_file, client.target.api_url)
            wait = Wait(client, answer.reservation_id, choice.gpu_type, times, verbose=wish.verbose)
            job = _wait(context, wait, surroundings)
    ready = "" if wish.no_wait else _ready(job, surroundings, client.target.api_url)
    if output.as_json:
        put(format_json(job))
    elif wish.no_wait:
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
    from gpudev.cli.render.data import format_json
    from gpudev.cli.render.forecasts import format_preview
    from gpudev.cli.render.times import read_now

    answer = client.preview(request)
    put(format_json(answer) if output.as_json else format_preview(answer, read_now()))


def _confirm(client: Client, choice: Choice, request: SubmitRequest) -> bool:
    """Show the plan to a person who was asked for it, and when it would start."""
    from gpudev.cli.render.offers import format_plan
    from gpudev.cli.render.times import read_now
    from gpudev.cli.terminal.asking import ask_yes

    say(format_plan(choice, client.preview(request), read_now()))
    return ask_yes("Reserve it?", default=True)


def _choose(wish: Wish, client: Client, surroundings: Surroundings) -> Choice:
    """What was typed, and on a terminal the answers to what was not."""
    from gpudev.cli.choices import choose

    offers = client.availability().availability
    if wish.may_ask and (wish.says_nothing or (wish.gpu_type is None and len(offers) > 1)):
        from gpudev.cli.questions import ask_choice

        choice = ask_choice(wish.gpu_type, wish.gpus, wish.total_hours, offers)
        choice = replace(choice, is_answered=True)
    else:
        choice = choose(wish.gpu_type, wish.gpus, wish.total_hours, offers)
    if wish.no_persist:
        return replace(choice, disk="none")
    if wish.disk is not None or not wish.may_ask:
        return replace(choice, disk=wish.disk)
    return replace(choice, disk=_ask_disk(wish, client, choice, surroundings))


def _ask_disk(wish: Wish, client: Client, choice: Choice, surroundings: Surroundings) -> str | None:
    """Who types everything is asked only if the default disk is taken, which would leave the home empty.

    What no disk would make possible is refused before the question.
    """
    from gpudev.cli.questions import DEFAULT_DISK, NO_DISK, ask_disk

    disks = client.disks.list().disks
    is_taken = any(disk.disk_name == DEFAULT_DISK and disk.in_use for disk in disks)
    if not choice.is_answered and not is_taken:
        return None
    client.preview(_request(wish, replace(choice, disk=NO_DISK), surroundings))
    return ask_disk(disks)


def _request(wish: Wish, choice: Choice, surroundings: Surroundings) -> SubmitRequest:
    from gpudev.client.asking import Options, build_request

    options = Options(
        name=wish.name,
        disk=choice.disk,
        disk_size_gb=wish.disk_size,
        env=wish.env,
        image=wish.dockerimage,
        distributed=wish.distributed,
        start_at=wish.at,
        node_labels=wish.node_label,
    )
    return build_request(surroundings, choice.gpu_type, choice.gpus, choice.hours, options)


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
        from gpudev.cli.terminal.asking import ask_one

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


def _describe(choice: Choice) -> str:
    from gpudev.cli.render.reservations import format_gpus
    from gpudev.cli.render.times import format_hours

    gpus = format_gpus(choice.gpu_type, choice.gpus, simulated=choice.simulated)
    return f"{gpus} for {format_hours(choice.hours)}"


def _ready(job: JobDetail, surroundings: Surroundings, api_url: str) -> str:
    """Leaves the SSH files behind, so that the commands it names work."""
    from gpudev.cli.render.reservations import format_ready
    from gpudev.cli.render.times import read_now
    from gpudev.client.ssh import write_config
    from gpudev.client.ssh_keys import list_identity_files

    config = write_config(surroundings, api_url, job, list_identity_files(surroundings))
    return spell(format_ready(job, read_now(), config))
