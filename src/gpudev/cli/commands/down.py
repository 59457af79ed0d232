"""`gpu-dev down`: stop the product on this machine."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpudev.cli.output import confirm, put, say
from gpudev.cli.spelling import spell
from gpudev.client.errors import ClientError, LoginFailed, ServerFailed, TimedOut, Unreachable, Usage
from gpudev.texts.vocabulary import LIVE

if TYPE_CHECKING:
    from gpudev.bootstrap.one_machine import OneMachine
    from gpudev.client.session import Client
    from gpudev.wire.jobs import JobDetail

PATIENCE_SECONDS = 60.0
"""How long the reservations may take to end before the servers are simply stopped."""


@click.command("down")
@click.option("--state-dir", type=click.Path(path_type=Path), help="The folder given to `up`.")
@click.option("--keep-servers", is_flag=True, help="Leave the dev servers running for the next `up`.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def command(state_dir: Path | None, *, keep_servers: bool, yes: bool) -> None:
    """Stop gpu-dev on this machine and end its dev servers. The homes stay."""
    from gpudev.bootstrap import Failure
    from gpudev.bootstrap.one_machine import OneMachine
    from gpudev.client.config import find_local_state_dir

    try:
        machine = OneMachine.at(state_dir or find_local_state_dir())
        if not keep_servers:
            _end_reservations(machine, ask=not yes)
        stopped = machine.stop()
        left = 0 if keep_servers else machine.stop_servers()
    except Failure as error:
        raise ClientError(error.message, hint=error.hint, code=error.code) from error
    put(_tell(stopped=stopped, keep_servers=keep_servers))
    if left:
        put(f"{left} dev server{'s' if left != 1 else ''} still ran and ended now. The homes are kept.")


def _tell(*, stopped: bool, keep_servers: bool) -> str:
    if not stopped:
        return "gpu-dev was not running."
    if keep_servers:
        return (
            f"gpu-dev has stopped; dev servers that were running still are. {spell('Go on with: gpu-dev up')}"
        )
    return "gpu-dev has stopped."


def _end_reservations(machine: OneMachine, *, ask: bool) -> None:
    """Cancel what is live through the running service, so that everything is told and cleaned up.

    A service that does not answer, or does not get it done, is stopped all the same.
    """
    client = _connect(machine)
    if client is None:
        return
    try:
        live = client.list(limit=500, statuses=LIVE).jobs
        if live and ask:
            _ask(len(live))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while live:
            _end(client, live, deadline)
            live = client.list(limit=500, statuses=LIVE).jobs
    except (Unreachable, TimedOut, ServerFailed, LoginFailed) as error:
        say(f"The reservations could not be ended in good order: {error.message}")


def _connect(machine: OneMachine) -> Client | None:
    from gpudev.client.config import Target, read_surroundings
    from gpudev.client.session import Client

    api_url = machine.find_api_url()
    if api_url is None:
        return None
    target = Target("local", api_url, machine.login_file)
    return Client(target, read_surroundings())


def _end(client: Client, jobs: list[JobDetail], deadline: float) -> None:
    for job in jobs:
        client.cancel(job.job_id)
    for job in jobs:
        say(f"Ending {job.name} …")
        client.wait_until_clean(job.job_id, timeout=max(0.0, deadline - time.monotonic()))


def _ask(count: int) -> None:
    what = f"{count} reservation{'s are' if count != 1 else ' is'} live and will be ended."
    if not sys.stdin.isatty():
        raise Usage(what, hint="Say so with --yes, or leave the servers running with --keep-servers.")
    if not confirm(f"{what} Go on?"):
        say("Nothing was ended.")
        raise click.Abort
