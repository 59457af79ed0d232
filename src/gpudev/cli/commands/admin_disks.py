"""`gpu-dev admin disks`."""

from __future__ import annotations

import click

from gpudev.cli.output import Output, json_option, pass_output, put


@click.group("disks")
def command() -> None:
    """Look after the disks of all users."""


@command.command("check")
@json_option
@pass_output
@click.pass_context
def check(context: click.Context, output: Output) -> None:
    """Print how disks and their storage differ. Nothing is touched; exit code 1 if they do."""
    from gpudev.cli.render.admin import format_drift
    from gpudev.cli.render.data import format_json
    from gpudev.client import session

    with session.connect() as client:
        drift = client.admin.check_disks()
    put(format_json(drift) if output.as_json else format_drift(drift))
    if drift.changes or drift.remarks or drift.problems:
        context.exit(1)
