"""`gpu-dev submit`: reserve, send a folder, run a command, fetch what it made, give back."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gpudev.cli.output import say
from gpudev.cli.request_options import Fields, Size, request_options, take_fields, take_size
from gpudev.cli.time_options import seconds_option

if TYPE_CHECKING:
    from gpudev.cli.job_run import Order
    from gpudev.client.config import Surroundings
    from gpudev.client.manifest import Manifest

UNASKED_BYTES = 1_000_000_000
"""So much is sent without a question where nobody can be asked."""
SHORTEST_GRACE, LONGEST_GRACE = 1.0, 25 * 60.0


class Sending(NamedTuple):
    """Whether the folder is sent; none of it concerns the request."""

    allow_home: bool
    dry_run: bool
    yes: bool


def _parse_grace(context: click.Context, parameter: click.Parameter, value: str) -> float:
    seconds = seconds_option(context, parameter, value)
    if seconds is None or not SHORTEST_GRACE <= seconds <= LONGEST_GRACE:
        raise click.BadParameter("Give 1 second to 25 minutes.", context, parameter)
    return seconds


@click.command("submit", context_settings={"allow_interspersed_args": False})
@click.argument("words", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@request_options(
    hours_help="For how long at most.  [default: 4]",
    disk_help="Your home there.  [default: the disk default]",
)
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
    sending = Sending(*(given.pop(name) for name in Sending._fields))
    order = _take_order(given)
    size = take_size(context, given)
    context.exit(_submit(size, take_fields(given), order, sending))


def _take_order(given: dict[str, Any]) -> Order:
    """What is to be run, taken out of what was typed."""
    from gpudev.cli.job_run import Order
    from gpudev.client.manifest import Wanted

    words, folder = given.pop("words"), given.pop("folder")
    return Order(
        # One word is for the shell there as it stands; several arrive as they were typed.
        command=words[0] if len(words) == 1 else shlex.join(words),
        folder=folder,
        results=given.pop("results") or folder,
        wanted=Wanted(given.pop("include"), given.pop("exclude")),
        grace=timedelta(seconds=given.pop("grace")),
        keep_alive=given.pop("keep_alive"),
    )


def _submit(size: Size, fields: Fields, order: Order, sending: Sending) -> int:
    from gpudev.cli.render.manifest import format_manifest
    from gpudev.client.config import read_surroundings
    from gpudev.client.manifest import check_not_home, make_manifest

    surroundings = read_surroundings()
    if not sending.allow_home:
        check_not_home(order.folder, surroundings.home)
    manifest = make_manifest(order.folder, order.wanted)
    say(format_manifest(manifest, whole=sending.dry_run))
    if sending.dry_run:
        return 0
    if not sending.yes:
        _confirm(manifest)
    return _run(size, fields, order, surroundings)


def _confirm(manifest: Manifest) -> None:
    """A person is asked; where there is none, only what is not much is sent unasked."""
    from gpudev.cli.render.manifest import format_size
    from gpudev.cli.screen import can_ask
    from gpudev.cli.terminal.prompts import ask_yes
    from gpudev.client.errors import Usage

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


def _run(size: Size, fields: Fields, order: Order, surroundings: Surroundings) -> int:
    from gpudev.cli.choices import choose, is_simulated
    from gpudev.cli.job_run import JobRun
    from gpudev.cli.render.offers import format_request
    from gpudev.client import session
    from gpudev.client.submit_request import complete_request

    with session.connect(surroundings) as client:
        offers = client.availability().availability
        request = complete_request(replace(choose(size, offers), **fields), surroundings)
        words = format_request(request, simulated=is_simulated(request, offers))
        return JobRun(client, order).run(request, words)
