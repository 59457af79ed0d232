"""`gpu-dev config ssh-include`."""

from __future__ import annotations

import click

from gpudev.cli.output import put


@click.command("ssh-include")
@click.option("--remove", is_flag=True, help="Take the line out again.")
def command(*, remove: bool) -> None:
    """Let plain ssh, scp and editors know your dev servers, as gpu-dev-NAME and gpu-dev-ID.

    It puts one line at the beginning of ~/.ssh/config, and of Cursor's ~/.cursor/ssh_config where Cursor
    is. Doing it again changes nothing.
    """
    from gpudev.client import ssh_include
    from gpudev.client.config import read_surroundings

    surroundings = read_surroundings()
    line = ssh_include.include_line(surroundings)
    changed = ssh_include.exclude(surroundings) if remove else ssh_include.include(surroundings)
    for file in ssh_include.list_files(surroundings):
        if remove:
            put(f"{file}: removed." if file in changed else f"{file}: it was not there.")
        else:
            put(f"{file}: added {line}" if file in changed else f"{file}: it is there already.")
