"""A menu to be walked with the arrow keys: what each key does to it, and how it looks. No terminal here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpudev.cli.terminal.keys import Key
from gpudev.cli.terminal.lines import Line, Look

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
