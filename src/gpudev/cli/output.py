"""How the answer is to be written: options that commands share, and the writing.

Every listing is written the same way: `-o table|json|yaml|name`, and a remark where there is nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

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


_AS_IT_STANDS = "\b"
"""To click: do not fold the lines of this paragraph."""


def examples(*lines: str) -> str:
    return "\n".join([_AS_IT_STANDS, "Examples:", *(f"  {line}" for line in lines)])


class Listing(NamedTuple):
    """An answer of the server in the forms that people and programs read."""

    answer: object
    """As the HTTP API gives it; the whole of the JSON and YAML forms."""
    names: tuple[str, ...]
    """One a line, to be piped into other commands."""
    table: str
    remark: str = ""
    """Said in place of an empty table or an empty list of names."""
    is_empty: bool = False


def names_of(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(name for name in names if name)


def format_listing(listing: Listing, form: str) -> str:
    from gpudev.cli.render.data import format_json, format_yaml

    match form:
        case "json":
            return format_json(listing.answer)
        case "yaml":
            return format_yaml(listing.answer)
        case "name":
            return "\n".join(listing.names)
        case _:
            return listing.table


def print_listing(listing: Listing, form: str) -> None:
    if listing.is_empty and form in {"table", "name"}:
        say(listing.remark)
    else:
        put(format_listing(listing, form))
