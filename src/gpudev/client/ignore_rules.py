"""The rules of `.gitignore` and `.gpudevignore` files: which of them matches a path last.

A rule belongs to the folder of its file and knows the paths below it. In one file the last match decides, and
the file of a folder wins over those of the folders above it. What is below an excluded folder is never asked
about: `manifest` does not go there, so that nothing in it can be included again. That is how `git` does it.

A pattern becomes a regular expression on bytes, since a file system knows nothing else. `None` is a pattern
that never matches anything: an unfinished bracket, or a backslash at the end.
"""

from __future__ import annotations

import os
import re
import string
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

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


_MOST_BYTES = 16 * 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a file."""

    pattern: re.Pattern[bytes] | None
    includes: bool = False
    """It begins with `!`: what it matches is not excluded."""
    only_folders: bool = False
    is_name: bool = False
    """It has no slash, so that it is matched with the last part of a path."""

    def matches(self, path: bytes, *, is_folder: bool) -> bool:
        """A path relative to the folder of the rule's file."""
        if self.pattern is None or (self.only_folders and not is_folder):
            return False
        text = path.rpartition(b"/")[2] if self.is_name else path
        return self.pattern.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class RuleFile:
    """The rules of one file."""

    base: bytes
    """The folder that it speaks of, with a slash at the end; empty: the root of all paths."""
    rules: tuple[Rule, ...]

    def find(self, path: bytes, *, is_folder: bool) -> Rule | None:
        """The last rule that matches."""
        if not path.startswith(self.base):
            return None
        below = path[len(self.base) :]
        found = (rule for rule in reversed(self.rules) if rule.matches(below, is_folder=is_folder))
        return next(found, None)


Rules = tuple[RuleFile, ...]
"""Those that hold in a folder; a later file wins."""


def find_rule(rules: Rules, path: bytes, *, is_folder: bool) -> Rule | None:
    found = (file.find(path, is_folder=is_folder) for file in reversed(rules))
    return next((rule for rule in found if rule is not None), None)


def parse_rules(content: bytes, base: bytes = b"") -> RuleFile:
    lines = content.removeprefix(_BYTE_ORDER_MARK).split(b"\n")
    parsed = (_parse_line(line.removesuffix(b"\r")) for line in lines)
    return RuleFile(base, tuple(rule for rule in parsed if rule is not None))


def read_rules(file: Path, base: bytes = b"") -> Rules:
    """None, one file's; a file that is not there, or that nobody may read, has no rules."""
    try:
        if file.is_symlink() or not file.is_file():
            return ()
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES)
    except OSError:
        return ()
    return (parse_rules(content, base),)


def parse_patterns(patterns: Iterable[str]) -> RuleFile:
    """Patterns from a command line."""
    return parse_rules(b"\n".join(map(os.fsencode, patterns)))


def _parse_line(line: bytes) -> Rule | None:
    if line.startswith(b"#"):
        return None
    pattern = _without_spaces(line)
    includes = pattern.startswith(b"!")
    pattern = pattern[1:] if includes else pattern
    only_folders = pattern.endswith(b"/")
    pattern = pattern[:-1] if only_folders else pattern
    if not pattern:
        return None
    is_name = b"/" not in pattern
    compiled: Callable[[bytes], re.Pattern[bytes] | None] = compile_name if is_name else compile_path
    return Rule(compiled(pattern.removeprefix(b"/")), includes, only_folders, is_name)


def _without_spaces(line: bytes) -> bytes:
    """Without the spaces at its end, except one that a backslash stands before."""
    end = at = 0
    while at < len(line):
        if line[at : at + 1] == b"\\":
            at += 2
            end = at
        else:
            at += 1
            end = end if line[at - 1 : at] == b" " else at
    return line[:end]


@dataclass(frozen=True, slots=True)
class Repository:
    """The Git repository around a folder."""

    prefix: bytes
    """The way from its root to the folder, with a slash at the end; empty: the folder is the root."""
    rules: Rules
    """Of its own list, and of the folders above; not of the folder itself."""


def find_repository(folder: Path, file_name: str) -> Repository:
    """Paths are counted from the root of the repository; without one, from the folder."""
    root = next((place for place in (folder, *folder.parents) if _has_repository(place)), None)
    if root is None:
        return Repository(b"", ())
    rules = read_rules(_find_exclude_file(root / ".git"))
    parts = folder.relative_to(root).parts
    for count in range(len(parts)):
        rules += read_rules(root.joinpath(*parts[:count], file_name), _base_of(parts[:count]))
    return Repository(_base_of(parts), rules)


def _has_repository(place: Path) -> bool:
    """`.git` is a folder, or in a worktree a file."""
    try:
        return os.path.lexists(place / ".git")
    except OSError:
        return False


def _base_of(parts: tuple[str, ...]) -> bytes:
    return b"".join(os.fsencode(part) + b"/" for part in parts)


def _find_exclude_file(git: Path) -> Path:
    """In a worktree `.git` is a file that names a folder, which names the one that all worktrees share."""
    if git.is_file():
        git = git.parent / _read_line(git).removeprefix("gitdir: ")
        git = git / (_read_line(git / "commondir") or ".")
    return git / "info" / "exclude"


def _read_line(file: Path) -> str:
    try:
        return os.fsdecode(file.read_bytes()[:_MOST_BYTES]).split("\n", 1)[0]
    except OSError:
        return ""
