"""What of a folder is sent to a dev server, and what is left out and why.

The folder is walked once and nothing in it is followed: a link is sent as a link. Whether something is left
out is asked in this order: `--include` sends it, `--exclude` does not, a secret is not sent, `.gpudevignore`
decides, then `.gitignore`, and last what others can make again. What is below a folder that is left out is
left out.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpudev.client.errors import Usage
from gpudev.client.ignore_rules import RuleFile, Rules, find_repository, find_rule, parse_patterns, read_rules
from gpudev.client.secret_files import SNIFFED_BYTES, find_secret_content, find_secret_name

REBUILT = (".git", ".venv", "__pycache__", "node_modules")
"""What is neither sent nor fetched unless it is asked for: others can make it again."""
GIT_RULES = ".gitignore"
OWN_RULES = ".gpudevignore"
MADE_AGAIN = "can be made again"
NOT_A_FILE = "not a file"
UNREADABLE = "not readable"
_NO_SECRETS = frozenset({GIT_RULES, OWN_RULES, MADE_AGAIN, NOT_A_FILE, UNREADABLE, "--exclude"})


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that is sent. Its path is relative to the folder, with slashes."""

    path: str
    size: int = 0
    is_folder: bool = False


@dataclass(frozen=True, slots=True)
class LeftOut:
    path: str
    """With a slash at the end for a folder."""
    reason: str

    @property
    def is_secret(self) -> bool:
        return self.reason not in _NO_SECRETS


@dataclass(frozen=True, slots=True)
class Manifest:
    folder: Path
    entries: tuple[Entry, ...]
    left_out: tuple[LeftOut, ...]
    files: tuple[Entry, ...] = field(init=False)
    size: int = field(init=False)
    """Of all files, in bytes."""

    def __post_init__(self) -> None:
        files = tuple(entry for entry in self.entries if not entry.is_folder)
        object.__setattr__(self, "files", files)
        object.__setattr__(self, "size", sum(entry.size for entry in files))

    def list_largest(self, count: int) -> Sequence[Entry]:
        return sorted(self.files, key=lambda entry: (-entry.size, entry.path))[:count]

    def names(self) -> bytes:
        """For `tar -T`: each name ends with a zero byte, and begins so that none looks like an option."""
        return b"".join(b"./" + os.fsencode(entry.path) + b"\0" for entry in self.entries)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was said on the command line; the patterns are those of a `.gitignore` file."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def list_unfetched(self) -> tuple[str, ...]:
        """The names that are not fetched."""
        rebuilt = [name for name in REBUILT if name not in {text.strip("/") for text in self.include}]
        return (*rebuilt, *self.exclude)


EVERYTHING_USUAL = Wanted()


def check_not_home(folder: Path, home: Path) -> None:
    """`Usage` for a home directory as a whole, and for everything that one is in."""
    asked = folder.resolve()
    for place in {home.resolve(), _find_account_home()}:
        if place == asked or asked in place.parents:
            raise Usage(
                f"{asked} is a home directory, or has one in it.",
                hint="Name a project folder with --folder. To send it all the same: --allow-home",
                code="home_directory",
            )


def _find_account_home() -> Path:
    """By the account, whatever HOME says; an account without an entry has none."""
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir).resolve()
    except KeyError:
        return Path("/")


def make_manifest(folder: Path, wanted: Wanted = EVERYTHING_USUAL) -> Manifest:
    """`Usage` if there is no such folder."""
    root = folder.resolve()
    if not root.is_dir():
        raise Usage(f"There is no folder {folder}.")
    repository = find_repository(root, GIT_RULES)
    walk = _Walk(root, repository.prefix, parse_patterns(wanted.include), parse_patterns(wanted.exclude))
    walk.enter("", repository.rules, ())
    return Manifest(root, tuple(walk.entries), tuple(walk.left_out))


class _Walk:
    """One walk through a folder; deep ones are no deeper for Python than flat ones."""

    def __init__(self, root: Path, prefix: bytes, include: RuleFile, exclude: RuleFile) -> None:
        self._root = root
        self._prefix = prefix
        self._include = include
        self._exclude = exclude
        self.entries: list[Entry] = []
        self.left_out: list[LeftOut] = []

    def enter(self, path: str, git_rules: Rules, own_rules: Rules) -> None:
        waiting = [(path, git_rules, own_rules)]
        while waiting:
            place, git, own = waiting.pop()
            base = os.fsencode(place) + b"/" if place else b""
            git += read_rules(self._root / place / GIT_RULES, self._prefix + base)
            own += read_rules(self._root / place / OWN_RULES, base)
            folders = [entry.path for entry in self._take_all(place, git, own) if entry.is_folder]
            waiting.extend((below, git, own) for below in reversed(folders))

    def _take_all(self, place: str, git: Rules, own: Rules) -> Iterator[Entry]:
        for found in self._list(place):
            path = f"{place}/{found.name}" if place else found.name
            is_folder = found.is_dir(follow_symlinks=False)
            reason = self._find_reason(path, found, git, own, is_folder=is_folder)
            if reason is not None:
                self.left_out.append(LeftOut(f"{path}/" if is_folder else path, reason))
                continue
            size = 0 if is_folder else found.stat(follow_symlinks=False).st_size
            entry = Entry(path, size, is_folder)
            self.entries.append(entry)
            yield entry

    def _list(self, place: str) -> Iterable[os.DirEntry[str]]:
        try:
            with os.scandir(self._root / place) as found:
                return sorted(found, key=lambda entry: os.fsencode(entry.name))
        except OSError:
            # It may have gone meanwhile, or nobody may look into it: `tar` sends the folder itself.
            self.left_out.append(LeftOut(f"{place}/*", UNREADABLE))
            return ()

    def _find_reason(
        self, path: str, found: os.DirEntry[str], git: Rules, own: Rules, *, is_folder: bool
    ) -> str | None:
        """Why it is left out; None: it is sent."""
        name = os.fsencode(path)
        if not is_folder and not _is_sendable(found):
            return NOT_A_FILE
        if self._include.find(name, is_folder=is_folder) is not None:
            return None
        if self._exclude.find(name, is_folder=is_folder) is not None:
            return "--exclude"
        if secret := find_secret_name(path):
            return secret
        if rule := find_rule(own, name, is_folder=is_folder):
            ignored = None if rule.includes else OWN_RULES
        elif rule := find_rule(git, self._prefix + name, is_folder=is_folder):
            ignored = None if rule.includes else GIT_RULES
        else:
            ignored = None
        if ignored or found.name in REBUILT:
            return ignored or MADE_AGAIN
        return _sniff(found) if found.is_file(follow_symlinks=False) else None


def _is_sendable(found: os.DirEntry[str]) -> bool:
    try:
        mode = found.stat(follow_symlinks=False).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def _sniff(found: os.DirEntry[str]) -> str | None:
    """What its contents say. What cannot be read cannot be sent either."""
    try:
        descriptor = os.open(found.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return find_secret_content(os.read(descriptor, SNIFFED_BYTES))
        finally:
            os.close(descriptor)
    except OSError:
        return UNREADABLE
