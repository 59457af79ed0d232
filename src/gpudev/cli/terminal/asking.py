"""Questions to a person: a menu where lines may move, numbers to type where they may not.

Nothing here is called without a terminal; see `screen.can_ask`. Whoever does not want to answer presses
Ctrl-C, which ends the command with its own exit code.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from gpudev.cli.durations import parse_hours
from gpudev.cli.output import confirm, escape, say
from gpudev.cli.screen import can_draw
from gpudev.cli.terminal.canvas import Canvas
from gpudev.cli.terminal.keys import Key, reading_keys
from gpudev.cli.terminal.menu import Menu, format_menu, list_numbered, list_taken, press
from gpudev.client.config import read_surroundings


def ask_one(question: str, options: Sequence[str], *, default: int = 0, header: str = "") -> int:
    """The index of the option that is chosen."""
    menu = Menu(question, tuple(options), default, header)
    return _walk(menu)[0] if can_draw(read_surroundings()) else _ask_number(menu)


def ask_several(question: str, options: Sequence[str], *, header: str = "") -> tuple[int, ...]:
    menu = Menu(question, tuple(options), header=header, takes_several=True)
    return _walk(menu) if can_draw(read_surroundings()) else (_ask_number(menu),)


def ask_yes(question: str, *, default: bool = False) -> bool:
    return confirm(question, default=default)


def ask_text(question: str, default: str | None = None) -> str:
    answer: str = click.prompt(escape(question), default=default, err=True)
    return answer


def ask_hours(question: str, default: str) -> float:
    """Asked again until it is a length of time."""
    while True:
        try:
            return parse_hours(ask_text(question, default))
        except ValueError:
            say("Write it like 4, 2h30m or 90m.")


def _walk(menu: Menu) -> tuple[int, ...]:
    canvas = Canvas(sys.stderr)
    with reading_keys(sys.stdin.fileno()) as read:
        try:
            while True:
                canvas.draw(format_menu(menu))
                for key in read():
                    if key is Key.ENTER:
                        return list_taken(menu)
                    if key is Key.ESCAPE:
                        raise click.Abort
                    menu = press(menu, key)
        finally:
            canvas.close()


def _ask_number(menu: Menu) -> int:
    say("\n".join([menu.question, *list_numbered(menu)]))
    numbers = click.IntRange(1, len(menu.options))
    answer: int = click.prompt("Number", type=numbers, default=menu.cursor + 1, err=True)
    return answer - 1
