"""`gpu-dev admin users`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gpudev.cli.output import Output, format_options, json_option, pass_output, put
from gpudev.cli.screen import find_width

if TYPE_CHECKING:
    from gpudev.wire.admin import UserChanged


@click.group("users", invoke_without_command=True)
@format_options
@pass_output
@click.pass_context
def command(context: click.Context, output: Output) -> None:
    """List users; disable and enable one."""
    if context.invoked_subcommand is not None:
        return
    from gpudev.cli.listing import Listing, print_listing
    from gpudev.cli.render.admin import format_users
    from gpudev.cli.render.times import read_now
    from gpudev.client import session

    with session.connect() as client:
        answer = client.admin.list_users()
    names = tuple(user.username for user in answer.users)
    print_listing(Listing(answer, names, format_users(answer.users, read_now(), find_width())), output.format)


@command.command("disable")
@click.argument("name")
@json_option
@pass_output
def disable(output: Output, name: str) -> None:
    """Lock a user out: all keys end at once, and no login gives another.

    Dev servers of the user run on; end them with gpu-dev cancel.
    """
    from gpudev.client import session

    with session.connect() as client:
        _print_change(client.admin.disable_user(name), output)


@command.command("enable")
@click.argument("name")
@json_option
@pass_output
def enable(output: Output, name: str) -> None:
    """Let a user in again."""
    from gpudev.client import session

    with session.connect() as client:
        _print_change(client.admin.enable_user(name), output)


def _print_change(changed: UserChanged, output: Output) -> None:
    from gpudev.cli.render.data import format_json

    put(format_json(changed) if output.as_json else changed.message)
