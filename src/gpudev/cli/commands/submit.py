"""`gpu-dev submit`: reserve, send a folder, run a command, fetch what it made, give back."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpudev.cli.durations import hours_option, seconds_option
from gpudev.cli.output import say

if TYPE_CHECKING:
    from gpudev.client.config import Surroundings
    from gpudev.client.manifest import Manifest, Wanted

UNASKED_BYTES = 1_000_000_000
"""So much is sent without a question where nobody can be asked."""
SHORTEST_GRACE, LONGEST_GRACE = 1.0, 25 * 60.0


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
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    allow_home: bool
    dry_run: bool
    yes: bool
    grace: float
    keep_alive: bool
    words: tuple[str, ...]

    @property
    def command(self) -> str:
        """One word is for the shell there as it stands; several arrive as they were typed."""
        return self.words[0] if len(self.words) == 1 else shlex.join(self.words)

    @property
    def wanted(self) -> Wanted:
        from gpudev.client.manifest import Wanted

        return Wanted(self.include, self.exclude)


def _parse_env(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    for name, separator, _ in pairs:
        if not separator or not name:
            raise click.BadParameter(f'"{name}" has no value. Write NAME=VALUE.', context, parameter)
    return {name: value for name, _, value in pairs}


def _parse_grace(context: click.Context, parameter: click.Parameter, value: str) -> float:
    seconds = seconds_option(context, parameter, value)
    if seconds is None or not SHORTEST_GRACE <= seconds <= LONGEST_GRACE:
        raise click.BadParameter("Give 1 second to 25 minutes.", context, parameter)
    return seconds


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
@click.option("--include", metavar="PATTERN", multiple=True, help="Send what would be left out. Repeatable.")
@click.option("--exclude", metavar="NAME", multiple=True, help="Neither send nor fetch it. Repeatable.")
@click.option("--allow-home", is_flag=True, help="Send a whole home directory.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent, and do nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask, however much is sent.")
@click.option(
    "--grace",
    metavar="TIME",
    default="1m",
    show_default=True,
    callback=_parse_grace,
    help="From SIGTERM to SIGKILL, when the command is stopped; and how long before the end that is.",
)
@click.option("--keep-alive", is_flag=True, help="Keep the reservation when the command is over.")
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Run COMMAND on GPUs, with a folder of yours, and have its results back.

    It reserves, sends the folder, runs the command in the environment of a login, shows its output as it
    comes, fetches the files that are new or changed, and gives the GPUs back. The exit code is that of the
    command. The command does not mind when the connection is lost: it is made again. With several nodes the
    folder goes to all, and the command runs on that of rank 0.

    First it shows what it would send, and asks. Left out are what .gitignore and .gpudevignore name, .git,
    .venv, __pycache__ and node_modules, and secrets: keys, tokens, .env files, folders of credentials, shell
    histories. --include sends one of them; it takes a pattern as in a .gitignore file.

    Ctrl-C asks whether to stop the command and fetch its results, to leave it running, or to continue. Before
    the reservation ends, the command gets SIGTERM, and its results are fetched.
    """
    wish = Wish(**given)
    if wish.hours is not None and wish.length is not None:
        raise click.UsageError("--hours and --for say the same: give one of them.", context)
    context.exit(_submit(wish))


def _submit(wish: Wish) -> int:
    from gpudev.cli.render.manifest import format_manifest
    from gpudev.client.config import read_surroundings
    from gpudev.client.manifest import check_not_home, make_manifest

    surroundings = read_surroundings()
    if not wish.allow_home:
        check_not_home(wish.folder, surroundings.home)
    manifest = make_manifest(wish.folder, wish.wanted)
    say(format_manifest(manifest, whole=wish.dry_run))
    if wish.dry_run:
        return 0
    _confirm(wish, manifest)
    return _run(wish, surroundings)


def _confirm(wish: Wish, manifest: Manifest) -> None:
    """A person is asked; where there is none, only what is not much is sent unasked."""
    from gpudev.cli.render.manifest import format_size
    from gpudev.cli.screen import can_ask
    from gpudev.cli.terminal.asking import ask_yes
    from gpudev.client.errors import Usage

    if wish.yes:
        return
    if can_ask():
        if not ask_yes("Send this and run the command?", default=True):
            raise click.Abort
    elif manifest.size > UNASKED_BYTES:
        raise Usage(
            f"{format_size(manifest.size)} is more than {format_size(UNASKED_BYTES)}, and nobody is here to "
            "be asked.",
            hint="Send less, by .gpudevignore or --exclude; or all of it: --yes",
            code="too_much_to_send",
        )


def _run(wish: Wish, surroundings: Surroundings) -> int:
    from gpudev.cli.choices import choose
    from gpudev.cli.job_run import JobRun, Order
    from gpudev.cli.render.reservations import format_gpus
    from gpudev.cli.render.times import format_hours
    from gpudev.client import session
    from gpudev.client.asking import Options, build_request

    with session.connect(surroundings) as client:
        hours = wish.length if wish.hours is None else wish.hours
        choice = choose(wish.gpu_type, wish.gpus, hours, client.availability().availability)
        options = Options(
            name=wish.name, disk=wish.disk, env=wish.env, image=wish.dockerimage, distributed=wish.distributed
        )
        request = build_request(surroundings, choice.gpu_type, choice.gpus, choice.hours, options)
        gpus = format_gpus(choice.gpu_type, choice.gpus, simulated=choice.simulated)
        order = Order(
            command=wish.command,
            folder=wish.folder,
            results=wish.results or wish.folder,
            wanted=wish.wanted,
            grace=timedelta(seconds=wish.grace),
            keep_alive=wish.keep_alive,
        )
        return JobRun(client, order).run(request, f"{gpus} for {format_hours(choice.hours)}")
