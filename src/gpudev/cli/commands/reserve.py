"""`gpu-dev reserve`: ask, wait with live progress, and say how to connect."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from gpudev.cli.durations import hours_option
from gpudev.cli.errors import INTERRUPTED
from gpudev.cli.moments import moment_option
from gpudev.cli.output import Output, json_option, pass_output, put, say
from gpudev.cli.screen import can_ask, can_draw
from gpudev.cli.spelling import spell

if TYPE_CHECKING:
    from gpudev.cli.choices import Choice
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
    at: datetime | None
    dry_run: bool
    yes: bool
    no_wait: bool
    no_interactive: bool
    verbose: bool

    @property
    def may_ask(self) -> bool:
        return not self.yes and not self.no_interactive and can_ask()


def _parse_env(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    for name, separator, _ in pairs:
        if not separator or not name:
            raise click.BadParameter(f'"{name}" has no value. Write NAME=VALUE.', context, parameter)
    return {name: value for name, _, value in pairs}


@click.command("reserve")
@click.option("-g", "--gpus", type=int, help="How many GPUs.  [default: 1]")
@click.option("-t", "--gpu-type", metavar="TYPE", help="Which kind; gpu-dev avail lists them.")
@click.option("-H", "--hours", type=float, help="For how long.  [default: 4]")
@click.option("--for", "length", metavar="TIME", callback=hours_option, help="The same, as 2h30m or 90m.")
@click.option("-n", "--name", help="A name of your own for it.")
@click.option("--env", metavar="K=V", multiple=True, callback=_parse_env, help="Set this there. Repeatable.")
@click.option("-d", "--distributed", is_flag=True, help="The GPUs are those of several whole nodes.")
@click.option("--dockerimage", metavar="NAME", help="An image of your own, where the cluster can run it.")
@click.option("--disk", metavar="NAME|none", help="Your home; made if new.  [default: the disk default]")
@click.option("--no-persist", is_flag=True, help="A home that is not kept, like --disk none.")
@click.option("--disk-size", type=int, metavar="GB", help="Size of a disk that is made.  [default: 100]")
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

    If there is no room now, the request keeps its place in the queue; Ctrl-C ends the waiting, not the
    request. Your public SSH keys are let in: those in ~/.ssh and in your agent.
    """
    wish = Wish(**given)
    if wish.hours is not None and wish.length is not None:
        raise click.UsageError("--hours and --for say the same: give one of them.", context)
    if wish.disk is not None and wish.no_persist:
        raise click.UsageError("--disk and --no-persist do not go together: give one of them.", context)
    _reserve(context, wish, output)


def _reserve(context: click.Context, wish: Wish, output: Output) -> None:
    from gpudev.cli.render.data import format_json
    from gpudev.client import session, ssh
    from gpudev.client.config import read_surroundings

    surroundings = read_surroundings()
    with session.connect(surroundings) as client:
        choice = _choose(wish, client)
        if wish.dry_run:
            _preview(client, _request(wish, choice, wish.disk, surroundings), output)
            return
        disk = _choose_disk(wish, client)
        answer = client.reserve(_request(wish, choice, disk, surroundings))
        reservation_id = answer.reservation_id
        short = ssh.id8(reservation_id)
        say(f"Asked for {_describe(choice)}: reservation {short}.")
        if answer.warning:
            say(f"Warning: {answer.warning}")
        try:
            job = _get_or_wait(wish, client, reservation_id, surroundings)
        except KeyboardInterrupt:
            say(f"\nReservation {short} goes on. See it with: gpu-dev show {short}")
            say(f"Cancel it with: gpu-dev cancel {short}")
            context.exit(INTERRUPTED)
    text = short if wish.no_wait else _ready(job, surroundings, client.target.api_url)
    put(format_json(job) if output.as_json else text)


def _preview(client: Client, request: SubmitRequest, output: Output) -> None:
    from gpudev.cli.render.data import format_json
    from gpudev.cli.render.forecasts import format_preview
    from gpudev.cli.render.times import read_now

    answer = client.preview(request)
    put(format_json(answer) if output.as_json else format_preview(answer, read_now()))


def _choose(wish: Wish, client: Client) -> Choice:
    from gpudev.cli.choices import ask_and_choose, choose

    hours = wish.length if wish.hours is None else wish.hours
    offers = client.availability().availability
    if wish.gpu_type is None and len(offers) > 1 and wish.may_ask:
        return ask_and_choose(wish.gpus, hours, offers)
    return choose(wish.gpu_type, wish.gpus, hours, offers)


def _choose_disk(wish: Wish, client: Client) -> str | None:
    """None leaves it to the server: the default disk, or, while another reservation has that, none."""
    if wish.no_persist:
        return "none"
    if wish.disk is not None or not wish.may_ask:
        return wish.disk
    from gpudev.cli.disk_choice import ask_for_disk

    return ask_for_disk(client)


def _request(wish: Wish, choice: Choice, disk: str | None, surroundings: Surroundings) -> SubmitRequest:
    from gpudev import __version__
    from gpudev.client.ssh_keys import collect_public_keys
    from gpudev.wire.jobs import SubmitRequest

    return SubmitRequest(
        gpu_type=choice.gpu_type,
        gpu_count=choice.gpus,
        duration_hours=choice.hours,
        name=wish.name,
        distributed=wish.distributed or None,
        start_at=wish.at,
        env_vars=wish.env,
        image=wish.dockerimage,
        disk_name=disk,
        disk_size_gb=wish.disk_size,
        ssh_public_keys=list(collect_public_keys(surroundings)),
        client_version=__version__,
    )


def _get_or_wait(wish: Wish, client: Client, reservation_id: str, surroundings: Surroundings) -> JobDetail:
    from gpudev.cli.progress import open_progress
    from gpudev.cli.waiting import wait_until_active

    if wish.no_wait:
        return client.get(reservation_id)
    with open_progress(live=can_draw(surroundings)) as progress:
        return wait_until_active(client, reservation_id, progress, verbose=wish.verbose)


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
