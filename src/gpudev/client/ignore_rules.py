"""The rules of `.gitignore` and `.gpudevignore` files: which of them matches a path last.

A rule belongs to the folder of its file and knows the paths below it. In one file the last match decides, and
the file of a folder wins over those of the folders above it. What is below an excluded folder is never asked
about: `manifest` does not go there, so that nothing in it can be included again. That is how `git` does it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from gpudev.client.glob_pattern import compile_name, compile_path

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
