"""A group of commands whose modules are imported only when they are used.

The help of the whole group comes from the table, so that `gpu-dev --help` imports no command at all.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import click

from gpudev.cli.compat import override


class Entry(NamedTuple):
    place: str
    """`MODULE:NAME` in `gpudev.cli.commands`; without a name it is `command`."""
    help: str

    def load(self) -> click.Command:
        module, _, name = self.place.partition(":")
        command: click.Command = getattr(
            importlib.import_module(f"gpudev.cli.commands.{module}"), name or "command"
        )
        return command


class LazyGroup(click.Group):
    """Commands by name, in the order of the table, and other names for some of them."""

    def __init__(self, entries: Mapping[str, Entry], aliases: Mapping[str, str], **settings: Any) -> None:
        super().__init__(**settings)
        self._entries = entries
        self._aliases = aliases

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click passes it
        return list(self._entries)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click passes it
        entry = self._entries.get(self._aliases.get(cmd_name, cmd_name))
        return None if entry is None else entry.load()

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click passes it
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self._entries.items()])

    @override
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        known = (*self._entries, *self._aliases)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            import difflib

            near = difflib.get_close_matches(name, known, n=1)
            advice = f' Did you mean "{near[0]}"?' if near else ""
            raise click.UsageError(f'There is no command "{name}".{advice}', ctx)
        return super().resolve_command(ctx, args)
