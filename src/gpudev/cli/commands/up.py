"""`gpu-dev up`: the whole product on this machine."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpudev.cli.output import put, say
from gpudev.client.errors import ClientError

if TYPE_CHECKING:
    from gpudev.bootstrap.control_plane import Ready


@click.command("up")
@click.option("--state-dir", type=click.Path(path_type=Path), help="Folder for everything that is kept.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port of the API; left out, a free one is found.")
@click.option("--fleet", default="", help="test, prod, detect, or a fleet file.")
@click.option("--detach", is_flag=True, help="Go to the background once everything answers.")
def command(state_dir: Path | None, port: int | None, fleet: str, *, detach: bool) -> None:
    """Run gpu-dev on this machine: database, API, controllers and dev servers.

    Ctrl-C stops it and leaves the dev servers running; the next `up` finds them again. End them too
    with: gpu-dev down.
    """
    from gpudev.bootstrap import Failure
    from gpudev.bootstrap.control_plane import UpOptions
    from gpudev.bootstrap.one_machine import OneMachine

    options = UpOptions(port, fleet)
    try:
        machine = OneMachine.at(state_dir)
        if detach:
            machine.start_detached(options)
            put("gpu-dev runs in the background. Stop it with: " + spell("down"))
            put(f"Next: {spell('reserve --gpus 1 --hours 1')}")
        else:
            say("Starting gpu-dev …")
            machine.run(options, announce)
            put("gpu-dev has stopped; dev servers that were running still are.")
    except Failure as error:
        raise ClientError(error.message, hint=error.hint, code=error.code) from error


def announce(ready: Ready) -> None:
    """Leave a login for this user, and say what to type next."""
    from gpudev.client.config import write_environment

    before = write_environment("local", ready.api_url, ready.login_file)
    put(f"gpu-dev is ready at {ready.api_url}  (API docs: {ready.api_url}/docs)")
    put(f"  fleet      {ready.fleet}")
    put(f"  isolation  {ready.isolation}")
    put(f"  state      {ready.state_dir}")
    put(f"  metrics    {ready.metrics_url}")
    if before not in {None, "local"}:
        put(f'The environment was "{before}" and is "local" now.')
    put(f"Next, in another terminal: {spell('reserve --gpus 1 --hours 1')}")
    sys.stdout.flush()


def spell(arguments: str) -> str:
    """A command as it can be typed here: the program may not be on the PATH."""
    program = Path(sys.argv[0])
    on_path = shutil.which("gpu-dev")
    if on_path or program.name != "gpu-dev":
        return f"gpu-dev {arguments}"
    try:
        program = program.absolute().relative_to(Path.cwd())
    except ValueError:
        program = program.absolute()
    return f"{shlex.quote(str(program))} {arguments}"
