"""Every listing is written the same way: `-o table|json|yaml|name`, and a remark where there is nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gpudev.cli.output import put, say


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
