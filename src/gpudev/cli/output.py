"""How the answer is to be written: options that commands share, and the writing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from gpudev.wire.text import escape_hidden

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

FORMATS = ("table", "json", "yaml", "name")


class Output:
    """What `--json` or `-o` said; the error report at the very end asks it too."""

    def __init__(self) -> None:
        self.format = "table"

    @property
    def as_json(self) -> bool:
        return self.format == "json"


pass_output = click.make_pass_decorator(Output, ensure=True)


def json_option(command: Decorated) -> Decorated:
    """`--json`, read before the other options so that their errors are JSON as well."""
    return click.option(
        "--json",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_choose_json,
        help="Write JSON to stdout, and errors as JSON to stderr.",
    )(command)


def format_options(command: Decorated) -> Decorated:
    """`-o` and its short form `--json`, for listings."""
    choose = click.option(
        "-o",
        "--output",
        type=click.Choice(FORMATS),
        is_eager=True,
        expose_value=False,
        callback=_choose_format,
        help="Form of the listing.  [default: table]",
    )
    return json_option(choose(command))


def escape(text: str) -> str:
    """The one step before a terminal: nothing in a text from anywhere else can move the cursor or hide.

    Names, reasons, events, file names and logs come from other people and their programs.
    """
    return escape_hidden(text, "\n\t")


def put(text: str) -> None:
    """Data, to stdout."""
    click.echo(escape(text))


def say(text: str) -> None:
    """Progress, remarks and errors, to stderr."""
    click.echo(escape(text), err=True)


def confirm(question: str, *, default: bool = False) -> bool:
    return click.confirm(escape(question), default=default, err=True)


def _choose_json(context: click.Context, _: click.Parameter, value: object) -> None:
    if value:
        context.ensure_object(Output).format = "json"


def _choose_format(context: click.Context, _: click.Parameter, value: str | None) -> None:
    if value:
        context.ensure_object(Output).format = value
