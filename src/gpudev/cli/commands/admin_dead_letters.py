"""`gpu-dev admin dead-letters`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gpudev.cli.output import Output, format_options, json_option, pass_output, put
from gpudev.cli.screen import find_width

if TYPE_CHECKING:
    from gpudev.wire.admin import DeadLetterChanged


@click.group("dead-letters", invoke_without_command=True)
@format_options
@pass_output
@click.pass_context
def command(context: click.Context, output: Output) -> None:
    """List messages that were given up, with their errors; retry or drop one."""
    if context.invoked_subcommand is not None:
        return
    from gpudev.cli.listing import Listing, print_listing
    from gpudev.cli.render.dead_letters import format_dead_letters
    from gpudev.cli.render.times import read_now
    from gpudev.client import session

    with session.connect() as client:
        answer = client.dead_letters.list()
    names = tuple(letter.letter_id for letter in answer.dead_letters)
    shown = format_dead_letters(answer.dead_letters, read_now(), find_width())
    print_listing(Listing(answer, names, shown), output.format)


@command.command("retry")
@click.argument("letter_id", metavar="ID")
@json_option
@pass_output
def retry(output: Output, letter_id: str) -> None:
    """Send a dead letter again."""
    from gpudev.client import session

    with session.connect() as client:
        _print_change(client.dead_letters.retry(letter_id), output)


@command.command("drop")
@click.argument("letter_id", metavar="ID")
@json_option
@pass_output
def drop(output: Output, letter_id: str) -> None:
    """Delete a dead letter."""
    from gpudev.client import session

    with session.connect() as client:
        _print_change(client.dead_letters.drop(letter_id), output)


def _print_change(changed: DeadLetterChanged, output: Output) -> None:
    from gpudev.cli.render.data import format_json

    put(format_json(changed) if output.as_json else changed.message)
