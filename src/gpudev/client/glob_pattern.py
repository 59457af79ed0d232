"""One pattern of a `.gitignore` file as a regular expression on bytes, with the rules of `git`.

Names are bytes, since a file system knows nothing else. `None` is a pattern that never matches anything: an
unfinished bracket, or a backslash at the end.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from dataclasses import dataclass

_SPECIAL = b"*?[\\"
_SLASH, _STAR, _BACKSLASH, _DASH, _OPEN, _CLOSE, _COLON = b"/*\\-[]:"
_ALL = frozenset(range(256))


def _members(characters: str) -> frozenset[int]:
    return frozenset(characters.encode("ascii"))


_CLASSES = {
    b"alnum": _members(string.ascii_letters + string.digits),
    b"alpha": _members(string.ascii_letters),
    b"blank": _members(" \t"),
    b"cntrl": frozenset({*range(32), 127}),
    b"digit": _members(string.digits),
    b"graph": frozenset(range(33, 127)),
    b"lower": _members(string.ascii_lowercase),
    b"print": frozenset(range(32, 127)),
    b"punct": _members(string.punctuation),
    b"space": _members(" \t\n\r\v\f"),
    b"upper": _members(string.ascii_uppercase),
    b"xdigit": _members(string.hexdigits),
}


class _NeverMatches(Exception):
    """The pattern is unfinished."""


@dataclass(frozen=True, slots=True)
class _Bracket:
    members: frozenset[int]
    end: int
    """Where the pattern goes on."""


def compile_name(pattern: bytes) -> re.Pattern[bytes] | None:
    """For a pattern without a slash: it is matched with the last part of a path."""
    return _compile(pattern, is_path=False)


def compile_path(pattern: bytes) -> re.Pattern[bytes] | None:
    """For a pattern with a slash: it is matched with a path, and only `**` passes a slash.

    The literal beginning is compared on its own, and what follows it counts as a beginning as well: two
    stars after it pass slashes. That is how `git` does it.
    """
    length = next((at for at, byte in enumerate(pattern) if byte in _SPECIAL), len(pattern))
    return _compile(pattern[length:], is_path=True, prefix=re.escape(pattern[:length]))


def _compile(pattern: bytes, *, is_path: bool, prefix: bytes = b"") -> re.Pattern[bytes] | None:
    try:
        parts = b"".join(_translate(pattern, is_path=is_path))
    except _NeverMatches:
        return None
    return re.compile(prefix + parts, re.DOTALL)


def _translate(pattern: bytes, *, is_path: bool) -> Iterator[bytes]:
    at = 0
    while at < len(pattern):
        byte = pattern[at : at + 1]
        if byte == b"*":
            end = _end_of_stars(pattern, at)
            part, at = _translate_stars(pattern, at, end) if is_path else (b".*", end)
            yield part
        elif byte == b"?":
            yield b"[^/]" if is_path else b"."
            at += 1
        elif byte == b"[":
            bracket = _read_bracket(pattern, at + 1)
            yield _class_of(bracket.members - {_SLASH} if is_path else bracket.members)
            at = bracket.end
        else:
            at += byte == b"\\"
            if at == len(pattern):
                raise _NeverMatches
            yield re.escape(pattern[at : at + 1])
            at += 1


def _end_of_stars(pattern: bytes, at: int) -> int:
    while at < len(pattern) and pattern[at] == _STAR:
        at += 1
    return at


def _translate_stars(pattern: bytes, start: int, end: int) -> tuple[bytes, int]:
    """Several stars between slashes pass slashes; with the slash after them they may stand for nothing."""
    rest = pattern[end : end + 2]
    is_whole_part = start == 0 or pattern[start - 1] == _SLASH
    if end - start == 1 or not is_whole_part or not (not rest or rest[:1] == b"/" or rest == b"\\/"):
        return b"[^/]*", end
    return (b"(?:.*/)?", end + 1) if rest[:1] == b"/" else (b".*", end)


def _read_bracket(pattern: bytes, at: int) -> _Bracket:
    """What is between brackets; `]` is a member if it comes first."""
    is_negated = pattern[at : at + 1] in {b"!", b"^"}
    at += is_negated
    members: set[int] = set()
    before = 0
    first = at
    while at == first or pattern[at : at + 1] != b"]":
        if at >= len(pattern):
            raise _NeverMatches
        byte = pattern[at]
        following = pattern[at + 1 : at + 2]
        if byte == _BACKSLASH:
            at += 1
            before = _get(pattern, at)
            members.add(before)
        elif byte == _DASH and before and following not in {b"", b"]"}:
            at += 2 if following == b"\\" else 1
            members.update(range(before, _get(pattern, at) + 1))
            before = 0
        elif byte == _OPEN and following == b":":
            at, before = _read_class(pattern, at, members)
        else:
            before = byte
            members.add(byte)
        at += 1
    return _Bracket(_ALL - members if is_negated else frozenset(members), at + 1)


def _read_class(pattern: bytes, at: int, members: set[int]) -> tuple[int, int]:
    """`[:name:]`, from its `[` on: the place of its last byte, and what a range would begin with."""
    close = pattern.find(b"]", at + 2)
    if close < 0:
        raise _NeverMatches
    if close == at + 2 or pattern[close - 1] != _COLON:
        members.add(_OPEN)
        return at, _OPEN
    found = _CLASSES.get(pattern[at + 2 : close - 1])
    if found is None:
        raise _NeverMatches
    members.update(found)
    return close, 0


def _get(pattern: bytes, at: int) -> int:
    if at >= len(pattern):
        raise _NeverMatches
    return pattern[at]


def _class_of(members: frozenset[int]) -> bytes:
    if not members:
        return b"(?!)"
    return b"[" + b"".join(b"\\x%02x" % byte for byte in sorted(members)) + b"]"
