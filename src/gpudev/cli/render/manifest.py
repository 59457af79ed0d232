"""What `gpu-dev submit` is about to send, in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from gpudev.client.manifest import LeftOut, Manifest

LARGEST = 10
_SHOWN = 5
"""So many names of a kind that is no secret; of secrets all are shown."""
_UNIT = 1000


def format_size(size: float) -> str:
    """`999 B`, `1.5 kB`, `20 MB`."""
    unit, *larger = ("B", "kB", "MB", "GB", "TB")
    while size >= _UNIT and larger:
        size /= _UNIT
        unit, *larger = larger
    shown = f"{size:.1f}".removesuffix(".0") if size < 10 and unit != "B" else f"{size:.0f}"  # noqa: PLR2004 - two digits
    return f"{shown} {unit}"


def format_name(path: str) -> str:
    """A path as one line of plain text, whatever bytes are in it."""
    return "".join(one if one.isprintable() else _escape(one) for one in path)


def format_count(manifest: Manifest) -> str:
    count = len(manifest.files)
    return f"{count} {'file' if count == 1 else 'files'}, {format_size(manifest.size)}"


def format_manifest(manifest: Manifest, *, whole: bool = False) -> str:
    """Number, size, the largest files, and what is left out and why; `whole` leaves out no name."""
    lines = [f"{format_name(str(manifest.folder))}: {format_count(manifest)} to send."]
    largest = manifest.list_largest(LARGEST)
    if largest:
        lines.append("Largest files:")
        lines += [f"  {format_size(entry.size):>7}  {format_name(entry.path)}" for entry in largest]
    if manifest.left_out:
        lines.append("Left out:")
        lines += _list_left_out(manifest.left_out, whole=whole)
    if any(left_out.is_secret for left_out in manifest.left_out):
        lines.append("Send one of these all the same with: --include PATTERN")
    return "\n".join(lines)


def _list_left_out(left_out: Sequence[LeftOut], *, whole: bool) -> Iterator[str]:
    by_reason = defaultdict(list)
    for one in sorted(left_out, key=lambda one: not one.is_secret):
        by_reason[one.reason].append(one)
    width = max(map(len, by_reason))
    for reason, group in by_reason.items():
        shown = group if whole or group[0].is_secret else group[:_SHOWN]
        for one in shown:
            yield f"  {reason:{width}}  {format_name(one.path)}"
        if len(shown) < len(group):
            yield f"  {reason:{width}}  and {len(group) - len(shown)} more"


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")
