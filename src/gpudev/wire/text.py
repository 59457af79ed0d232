"""The one type of free text in a request: a maximum length, and characters that people can see.

Everything that a caller may write in words is annotated with `Text`: names, reasons, labels, addresses,
values of the environment. The API refuses what does not fit with one error, and documents the limit in
OpenAPI. The CLI escapes the same set of hidden characters in what it prints, wherever it comes from.

Hidden are control characters, format characters (the marks that reverse the direction of text among them),
separators of lines and halves of surrogate pairs. The two joiners that Persian, Hindi and emoji are written
with are not.
"""

from __future__ import annotations

from typing import Annotated

HIDDEN = (
    (0x00, 0x1F),
    (0x7F, 0x9F),
    (0xAD, 0xAD),
    (0x600, 0x605),
    (0x61C, 0x61C),
    (0x6DD, 0x6DD),
    (0x70F, 0x70F),
    (0x890, 0x891),
    (0x8E2, 0x8E2),
    (0x180E, 0x180E),
    (0x200B, 0x200B),
    (0x200E, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x2064),
    (0x2066, 0x206F),
    (0xD800, 0xDFFF),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0001, 0xE0001),
    (0xE0020, 0xE007F),
)
"""The first and the last code of each range of characters that do not show."""

LINE_BREAKS = "\t\n\r"
"""Allowed besides in text of several lines."""


NOT_FOUND = "not_found"


class Text:
    """What a text may be: annotate `str` with it."""

    __slots__ = ("code", "has_lines", "longest", "pattern")

    def __init__(
        self, longest: int, *, has_lines: bool = False, code: str = "bad_text", pattern: str = ""
    ) -> None:
        self.longest = longest
        self.has_lines = has_lines
        self.code = code
        """Of the error."""
        self.pattern = pattern
        """What the OpenAPI document says of it. The rules check it: their errors explain more."""

    @property
    def allowed(self) -> str:
        """Hidden characters that are allowed all the same."""
        return LINE_BREAKS if self.has_lines else ""

    @property
    def rule(self) -> str:
        """For the sentence "FIELD must be ...": what is accepted."""
        lines = ", line breaks and tabs" if self.has_lines else ""
        return f"at most {self.longest} printable characters{lines}"

    def accepts(self, text: str) -> bool:
        return len(text) <= self.longest and not has_hidden(text, self.allowed)


class Within:
    """The range of a number, for the OpenAPI document: annotate `int` or `float` with it.

    The rules check it, not the reader of the request: their errors explain more.
    """

    __slots__ = ("first", "last", "without_first")

    def __init__(self, first: float, last: float, *, without_first: bool = False) -> None:
        self.first = first
        self.last = last
        self.without_first = without_first


class Word:
    """The words that this version answers with, for the OpenAPI document: annotate `str` with it.

    A client does not reject other words: a newer server may have more of them.
    """

    __slots__ = ("words",)

    def __init__(self, *words: str) -> None:
        self.words = words


class Exact:
    """A boolean that is written as `true` or `false`, not as 0, 1 or a word."""

    __slots__ = ()


Flag = Annotated[bool, Exact()]
Name = Annotated[str, Text(200)]
"""Of anything: a reservation, a disk, a user, a type. What a name looks like is checked by the rules."""
Lookup = Annotated[str, Text(200, code=NOT_FOUND)]
"""The name of something that exists; nothing that exists has a name that is not text."""
DiskSize = Annotated[int, Within(10, 10_000)]
"""In GB. Here, so that reservations do not load all that there is of disks."""
Line = Annotated[str, Text(500)]
"""A reason or a remark, in one line."""
Address = Annotated[str, Text(2000)]


def is_hidden(character: str) -> bool:
    code = ord(character)
    return any(first <= code <= last for first, last in HIDDEN)


def has_hidden(text: str, allowed: str = "") -> bool:
    # Nearly all text is printable in the sense of Python, too, which is quick to find out.
    rest = text.translate(dict.fromkeys(map(ord, allowed))) if allowed else text
    return not rest.isprintable() and any(map(is_hidden, rest))


def escape_hidden(text: str, allowed: str = "") -> str:
    r"""Each hidden character as Python writes it, `\x1b` for example, so that nothing acts on it."""
    if not has_hidden(text, allowed):
        return text
    return "".join(_escape(each) if is_hidden(each) and each not in allowed else each for each in text)


def _escape(character: str) -> str:
    code = ord(character)
    if code <= 0xFF:  # noqa: PLR2004 - what two digits hold
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - what four hold
