"""Questions to a person: a menu where lines may move, numbers to type where they may not.

What each key does to a menu, and how it looks, is decided without a terminal. What asks is never called
without one; see `screen.can_ask`. Whoever does not want to answer presses Ctrl-C, which ends the command with
its own exit code.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import click

from gpudev.cli.output import confirm, escape, say
from gpudev.cli.screen import can_draw
from gpudev.cli.terminal.canvas import Canvas
from gpudev.cli.terminal.keys import Key, reading_keys
from gpudev.cli.terminal.lines import Line, Look
from gpudev.cli.time_options import parse_hours
from gpudev.client.config import read_surroundings

ROWS = 12
"""Longer menus scroll."""

_ONE = "Arrow keys, then Enter; Ctrl-C to leave."
_SEVERAL = "Arrow keys; Space marks, Enter takes; Ctrl-C to leave."


@dataclass(frozen=True, slots=True)
class Menu:
    question: str
    options: tuple[str, ...]
    cursor: int = 0
    header: str = ""
    """Above the options, where they are columns."""
    takes_several: bool = False
    marked: frozenset[int] = frozenset()


def press(menu: Menu, key: Key) -> Menu:
    """The menu after this key. Enter and Escape end it, and change nothing."""
    last = len(menu.options) - 1
    match key:
        case Key.UP:
            return replace(menu, cursor=menu.cursor - 1 if menu.cursor else last)
        case Key.DOWN:
            return replace(menu, cursor=menu.cursor + 1 if menu.cursor < last else 0)
        case Key.FIRST:
            return replace(menu, cursor=0)
        case Key.LAST:
            return replace(menu, cursor=last)
        case Key.MARK if menu.takes_several:
            return replace(menu, marked=menu.marked ^ {menu.cursor})
        case _:
            return menu


def list_taken(menu: Menu) -> tuple[int, ...]:
    """What Enter takes: the marked ones, or where the cursor is if none is."""
    return tuple(sorted(menu.marked)) or (menu.cursor,)


def format_menu(menu: Menu, rows: int = ROWS) -> tuple[Line, ...]:
    first = min(max(0, menu.cursor - rows // 2), max(0, len(menu.options) - rows))
    shown = range(first, min(first + rows, len(menu.options)))
    more = len(menu.options) - len(shown)
    return (
        Line(menu.question, Look.STRONG, folds=True),
        *(
            [Line(f"  {'    ' if menu.takes_several else ''}{menu.header}", Look.FAINT)]
            if menu.header
            else []
        ),
        *(_format_option(menu, index) for index in shown),
        *([Line(f"  {more} more", Look.FAINT)] if more else []),
        Line(_SEVERAL if menu.takes_several else _ONE, Look.FAINT, folds=True),
    )


def _format_option(menu: Menu, index: int) -> Line:
    pointer = ">" if index == menu.cursor else " "
    mark = ("[x] " if index in menu.marked else "[ ] ") if menu.takes_several else ""
    look = Look.CHOSEN if index == menu.cursor else Look.PLAIN
    return Line(f"{pointer} {mark}{menu.options[index]}", look)


def list_numbered(menu: Menu) -> Sequence[str]:
    """The same where nothing may move: a number before each option."""
    width = len(str(len(menu.options)))
    header = [f"{' ' * (width + 2)}{menu.header}"] if menu.header else []
    return [*header, *(f"{number:>{width}}) {option}" for number, option in enumerate(menu.options, 1))]


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
