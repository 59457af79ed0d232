"""What `listing.sh` says of a home, for people to read: pure."""

from __future__ import annotations

import re

from gpudev.domain.untrusted import make_printable
from gpudev.domain.volume import FileListing
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say

_TOTAL = re.compile(r"total ([0-9]{1,18}) ([0-9]{1,18})")
_FILE = re.compile(r"[^ ]* ([0-9]{1,18}) ([^ ]*) ([^ ]*) (.*)", re.DOTALL)
"""Blocks, bytes, day, minute and path."""
_LONGEST_LINE = 1000


def read_listing(said: str) -> FileListing | None:
    """None if it was cut off before its end."""
    *files, last = said.splitlines() or [""]
    total = _TOTAL.fullmatch(last.strip())
    if total is None:
        return None
    count, used = int(total[1]), int(total[2])
    lines = [make_printable(_describe(line), _LONGEST_LINE) for line in files]
    if count > len(lines):
        lines.append(say(fact("listing_cut", count=count - len(lines))))
    return FileListing("\n".join(lines), used)


def _describe(line: str) -> str:
    """A name may have a line break in it: the rest of it stands on a line of its own."""
    found = _FILE.fullmatch(line)
    return f"{int(found[1]):>14,}  {found[2]} {found[3]}  {found[4]}" if found else line
