"""`gpu-dev connect` and `cp`: OpenSSH with the reservation's own configuration.

This process becomes `ssh` or `scp`, so that signals, the terminal and the exit code are that program's own.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import click

from gpudev.cli.compat import override
from gpudev.cli.completion import complete_with
from gpudev.cli.output import examples
from gpudev.client.errors import ClientError
from gpudev.texts.vocabulary import TERMINAL, Status

if TYPE_CHECKING:
    from pathlib import Path

    from gpudev.wire.jobs import JobDetail


REMOTE_COMMAND = "gpudev.remote_command"
SEPARATOR = "--"


class _WithRemoteCommand(click.Command):
    """Everything after `--` is for the dev server, also when no ID stands before it."""

    @override
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ours, separator, remote = _split(args)
        ctx.meta[REMOTE_COMMAND] = tuple(remote)
        if separator and not remote:
            raise click.UsageError('There is no command after "--".', ctx)
        return super().parse_args(ctx, ours)

    @override
    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


@click.command(
    "connect",
    cls=_WithRemoteCommand,
    epilog=examples(
        "gpu-dev connect",
        "gpu-dev connect train -- nvidia-smi",
        "gpu-dev connect train -- 'cd src && make'",
    ),
)
@click.argument("reservation", metavar="[ID]", required=False, shell_complete=complete_with("reservations"))
@click.option("--node", metavar="N", type=int, default=0, help="Of several nodes, the one of this rank.")
@click.pass_context
def connect(context: click.Context, reservation: str | None, node: int) -> None:
    """Open a shell on a dev server, or run COMMAND there.

    Without ID: your only active reservation, or the one that you choose. One word after -- is given to the
    remote shell as it stands (-- 'cd src && make'); several arrive as you typed them (-- python -c
    'print(1)'). The exit code is that of the command.
    """
    from gpudev.cli.selection import get_active
    from gpudev.client import session, ssh
    from gpudev.client.config import read_surroundings
    from gpudev.client.ssh_keys import list_identity_files

    surroundings = read_surroundings()
    with session.connect(surroundings) as client:
        job = get_active(client, reservation)
    if job.status in TERMINAL:
        ssh.delete_config(surroundings, job.job_id)
    keys = list_identity_files(surroundings)
    config = ssh.write_config(surroundings, client.target.api_url, _check_active(job), keys)
    _become_ssh(config, _choose_host(job, node), context.meta[REMOTE_COMMAND])


def ssh_arguments(config: Path, alias: str, remote: Sequence[str], *, on_terminal: bool) -> list[str]:
    """A terminal is asked for where one is, so that `-- htop` works; pipes stay pipes."""
    arguments = ["ssh", "-F", str(config)]
    if remote and on_terminal:
        arguments.append("-t")
    arguments.append(alias)
    if remote:
        arguments += [SEPARATOR, remote[0] if len(remote) == 1 else shlex.join(remote)]
    return arguments


def _split(args: Sequence[str]) -> tuple[list[str], bool, list[str]]:
    if SEPARATOR not in args:
        return list(args), False, []
    at = list(args).index(SEPARATOR)
    return list(args[:at]), True, list(args[at + 1 :])


def _check_active(job: JobDetail) -> JobDetail:
    from gpudev.client import ssh
    from gpudev.client.errors import NotActive

    if job.status == Status.ACTIVE:
        return job
    short = ssh.id8(job.job_id)
    if job.status in TERMINAL:
        raise NotActive(
            f"Reservation {short} is over ({job.status}).", hint="Ask for new GPUs with: gpu-dev reserve"
        )
    if job.status == Status.STOPPED:
        raise NotActive(f"Reservation {short} is stopped.", hint=f"Start it with: gpu-dev start {short}")
    raise NotActive(
        f"Reservation {short} is not active yet: it is {job.status}.",
        hint=f"See when it starts with: gpu-dev show {short}",
    )


def _choose_host(job: JobDetail, rank: int) -> str:
    from gpudev.client import ssh
    from gpudev.client.errors import Usage

    hosts = ssh.list_hosts(job)
    if 0 <= rank < len(hosts):
        return hosts[rank].alias
    ranks = f"Its nodes are 0 to {len(hosts) - 1}." if len(hosts) > 1 else "Leave out --node: it has one."
    raise Usage(f"Reservation {ssh.id8(job.job_id)} has no node {rank}.", hint=ranks)


def _become_ssh(config: Path, alias: str, remote: Sequence[str]) -> NoReturn:

    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    become_openssh(ssh_arguments(config, alias, remote, on_terminal=on_terminal))


def become_openssh(words: Sequence[str]) -> NoReturn:
    """`ssh` or `scp`, from the user's PATH."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvp(words[0], list(words))  # noqa: S606 - no shell is wanted between us and it
    except FileNotFoundError as error:
        hint = "Install the OpenSSH client."
        raise ClientError(f"There is no {words[0]} on this machine.", hint=hint) from error


_REMOTE = re.compile(r"([A-Za-z0-9-]+):(.*)", re.DOTALL)


class Place(NamedTuple):
    """A path here, or on a dev server."""

    path: str
    reservation: str | None = None


def parse_place(text: str) -> Place:
    """`ID:path` is there, unless a file of that name is here."""
    from pathlib import Path

    match = _REMOTE.fullmatch(text)
    if match is None or Path(text).exists():
        return Place(text)
    return Place(match[2], match[1])


def find_reservation(places: Sequence[Place]) -> str | None:
    """The one that is copied to or from; None if the places do not make sense together."""
    *sources, target = places
    reservations = {place.reservation for place in sources}
    if len(reservations) != 1 or (target.reservation is None) == (None in reservations):
        return None
    return target.reservation or sources[0].reservation


@click.command("cp")
@click.argument("places", metavar="SOURCE... TARGET", nargs=-1, required=True)
@click.option("--node", metavar="N", type=int, default=0, help="Of several nodes, the one of this rank.")
@click.pass_context
def cp(context: click.Context, places: tuple[str, ...], node: int) -> None:
    """Copy files and folders to a dev server, or from it.

    A place there is written ID:PATH, where ID is the id of a reservation, the first characters of it (4 or
    more), or its name, and PATH begins at the home. Folders are copied with all that is in them; into a
    folder that exists already they go with their name, as scp does it. For example: gpu-dev cp train.py src
    train: and gpu-dev cp train:logs/out.txt .
    """
    from gpudev.client.dev_server import attach, get_node

    parsed = [parse_place(text) for text in places]
    reservation = find_reservation(parsed) if len(parsed) > 1 else None
    if reservation is None:
        raise click.UsageError("Copy to one dev server or from one: exactly one side is ID:PATH.", context)
    with attach(reservation) as box:
        remote = get_node(box.nodes, node, box.id)
    words = [remote.path(place.path) if place.reservation else _local(place.path) for place in parsed]
    become_openssh(["scp", "-F", str(remote.config), "-r", "-p", "--", *words])


def _local(path: str) -> str:
    """`scp` takes a name with a colon for a host, unless a slash comes first."""
    return path if path.startswith(("/", "./", "../")) else f"./{path}"
