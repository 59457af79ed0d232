"""`gpu-dev submit`: reserve, send a folder, run a command, fetch what it made, give back."""

from __future__ import annotations

import shlex
import signal
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpudev.cli.durations import hours_option
from gpudev.cli.errors import INTERRUPTED
from gpudev.cli.output import say
from gpudev.cli.spelling import spell

if TYPE_CHECKING:
    from gpudev.client.box import Box
    from gpudev.client.session import Client
    from gpudev.client.submission import Submission


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
    folder: Path
    results: Path | None
    exclude: tuple[str, ...]
    keep_alive: bool
    words: tuple[str, ...]

    @property
    def command(self) -> str:
        """One word is for the shell there as it stands; several arrive as they were typed."""
        return self.words[0] if len(self.words) == 1 else shlex.join(self.words)


def _parse_env(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    for name, separator, _ in pairs:
        if not separator or not name:
            raise click.BadParameter(f'"{name}" has no value. Write NAME=VALUE.', context, parameter)
    return {name: value for name, _, value in pairs}


@click.command("submit", context_settings={"allow_interspersed_args": False})
@click.argument("words", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("-g", "--gpus", type=int, help="How many GPUs.  [default: 1]")
@click.option("-t", "--gpu-type", metavar="TYPE", help="Which kind; gpu-dev avail lists them.")
@click.option("-H", "--hours", type=float, help="For how long at most.  [default: 4]")
@click.option("--for", "length", metavar="TIME", callback=hours_option, help="The same, as 2h30m or 90m.")
@click.option("-n", "--name", help="A name of your own for it.")
@click.option("--env", metavar="K=V", multiple=True, callback=_parse_env, help="Set this there. Repeatable.")
@click.option("-d", "--distributed", is_flag=True, help="The GPUs are those of several whole nodes.")
@click.option("--dockerimage", metavar="NAME", help="An image of your own, where the cluster can run it.")
@click.option("--disk", metavar="NAME|none", help="Your home there.  [default: the disk default]")
@click.option(
    "-C",
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    show_default=True,
    help="What is in it is sent, and the command runs in it.",
)
@click.option(
    "--results",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where files go that are new or changed.  [default: the same folder]",
)
@click.option("--exclude", metavar="NAME", multiple=True, help="Neither send nor fetch it. Repeatable.")
@click.option("--keep-alive", is_flag=True, help="Keep the reservation when the command is over.")
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Run COMMAND on GPUs, with a folder of yours, and have its results back.

    It reserves, sends the folder, runs the command in the environment of a login, shows its output as it
    comes, fetches the files that are new or changed, and gives the GPUs back. The exit code is that of the
    command. The command does not mind when the connection is lost: it is made again. With several nodes the
    folder goes to all, and the command runs on that of rank 0. Ctrl-C ends everything; with --keep-alive the
    command goes on.

    Files and folders called .git, .venv, __pycache__ and node_modules stay where they are.
    """
    wish = Wish(**given)
    if wish.hours is not None and wish.length is not None:
        raise click.UsageError("--hours and --for say the same: give one of them.", context)
    context.exit(_submit(wish))


def _submit(wish: Wish) -> int:
    from gpudev.client import session, ssh

    with session.connect() as client, ExitStack() as at_end:
        # Whoever ends us politely, a CI say, means what Ctrl-C means.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        at_end.callback(signal.signal, signal.SIGTERM, before)
        reservation_id = _reserve(client, wish)
        short = ssh.id8(reservation_id)
        if not wish.keep_alive:
            at_end.callback(_give_back, client, reservation_id)
        try:
            return _run(client, reservation_id, wish, at_end)
        except KeyboardInterrupt:
            if wish.keep_alive:
                say(spell(f"\nReservation {short} goes on. Cancel it with: gpu-dev cancel {short}"))
            return INTERRUPTED


def _reserve(client: Client, wish: Wish) -> str:
    from gpudev.cli.choices import choose
    from gpudev.cli.render.reservations import format_gpus
    from gpudev.cli.render.times import format_hours
    from gpudev.client.asking import Options, build_request
    from gpudev.client.ssh import id8

    hours = wish.length if wish.hours is None else wish.hours
    choice = choose(wish.gpu_type, wish.gpus, hours, client.availability().availability)
    options = Options(
        name=wish.name, disk=wish.disk, env=wish.env, image=wish.dockerimage, distributed=wish.distributed
    )
    request = build_request(client.surroundings, choice.gpu_type, choice.gpus, choice.hours, options)
    answer = client.reserve(request)
    gpus = format_gpus(choice.gpu_type, choice.gpus, simulated=choice.simulated)
    say(f"Asked for {gpus} for {format_hours(choice.hours)}: reservation {id8(answer.reservation_id)}.")
    return answer.reservation_id


def _run(client: Client, reservation_id: str, wish: Wish, at_end: ExitStack) -> int:
    from gpudev.client.box import Box
    from gpudev.client.submission import EXCLUDED, Submission

    job = client.wait_until(reservation_id, {"active"}, tell=lambda event: say(event.message))
    box = Box(client, job)
    submission = Submission(box, say, (*EXCLUDED, *wish.exclude))
    say(f"Sending {wish.folder.resolve()}.")
    submission.send(wish.folder)
    say(f"Running: {wish.command}")
    submission.start(wish.command)
    code = submission.follow(_write)
    say(f"The command ended with exit code {code}.")
    _fetch(submission, wish, box, at_end)
    return code


def _fetch(submission: Submission, wish: Wish, box: Box, at_end: ExitStack) -> None:
    """What was computed is not thrown away because it could not be fetched: then nothing is given back."""
    from gpudev.client.errors import CommandFailed
    from gpudev.client.ssh import id8

    folder = wish.results or wish.folder
    try:
        submission.fetch(folder)
    except CommandFailed as error:
        at_end.pop_all()
        short = id8(box.id)
        error.hint = (
            f"Reservation {short} is kept. The files are in {submission.place}/files there; "
            f"copy them with: gpu-dev cp {short}:{submission.place}/files ."
        )
        raise
    say(f"What is new or changed is in {folder.resolve()}.")
    if wish.keep_alive:
        say(spell(f"Reservation {id8(box.id)} is kept. Connect with: gpu-dev connect {id8(box.id)}"))
    else:
        submission.delete()


def _give_back(client: Client, reservation_id: str) -> None:
    from gpudev.client.box import release
    from gpudev.client.ssh import id8

    release(client, reservation_id)
    say(f"Gave {id8(reservation_id)} back.")


def _write(piece: bytes) -> None:
    sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
