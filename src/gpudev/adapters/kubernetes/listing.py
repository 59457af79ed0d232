"""What `listing.sh` says of a home, for people to read: pure."""

from __future__ import annotations

from gpudev.domain.volume import FileListing


def read_listing(said: str) -> FileListing | None:
    """None if it was cut off before its end."""
    *files, last = said.splitlines() or [""]
    words = last.split()
    if len(words) != len(("total", "files", "bytes")) or words[0] != "total":
        return None
    count, used = int(words[1]), int(words[2])
    lines = [_describe(line) for line in files]
    if count > len(lines):
        lines.append(f"... and {count - len(lines):,} more")
    return FileListing("\n".join(lines), used)


def _describe(line: str) -> str:
    """A name may have a line break in it: the rest of it stands on a line of its own."""
    parts = line.split(" ", 4)
    if len(parts) < len(("blocks", "bytes", "day", "minute", "path")) or not parts[1].isdigit():
        return line
    _, size, day, minute, path = parts
    return f"{int(size):>14,}  {day} {minute}  {path}"
