"""Files that came back from a dev server, put beside those that are here.

They arrive in a folder of their own and are moved to their places one by one, when all of them are here: a
connection that is lost half-way changes nothing. Nothing is followed, and a secret of yours that was never
sent is not replaced. What cannot go to its place is put aside.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from gpudev.client.secret_files import find_secret_name


@dataclass(frozen=True, slots=True)
class Placed:
    """How many files are new or changed, and which of them were put aside."""

    count: int = 0
    aside: tuple[str, ...] = ()
    """Their paths below `aside_folder`."""
    aside_folder: Path | None = None


@contextmanager
def arriving_in(folder: Path) -> Iterator[Path]:
    """A folder to unpack into, on the file system where the files are to go."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".gpu-dev-fetch-", dir=folder) as arrived:
        yield Path(arrived)


def place_results(
    arrived: Path, folder: Path, aside: Path, was_sent: Callable[[str], bool] = lambda _: False
) -> Placed:
    """Move all that arrived into the folder. A secret is replaced only if it `was_sent` from here."""
    count = 0
    put_aside = []
    for path in _list_files(arrived):
        is_kept = _is_secret(path) and not was_sent(path) and os.path.lexists(folder / path)
        if is_kept or not _can_go_to(folder, path):
            put_aside.append(path)
        target = (aside if path in put_aside[-1:] else folder) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        (arrived / path).replace(target)
        count += 1
    return Placed(count, tuple(put_aside), aside if put_aside else None)


def _list_files(arrived: Path) -> list[str]:
    found = []
    for place, folders, names in os.walk(arrived):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        found += [os.path.relpath(Path(place) / name, arrived) for name in (*names, *links)]
    return sorted(found)


def _is_secret(path: str) -> bool:
    parts = path.split("/")
    return any(find_secret_name("/".join(parts[: count + 1])) for count in range(len(parts)))


def _can_go_to(folder: Path, path: str) -> bool:
    """Nothing is in the way: a link or a file where a folder is needed, a folder where the file goes."""
    *parents, _ = path.split("/")
    for count in range(len(parents)):
        place = folder.joinpath(*parents[: count + 1])
        if os.path.lexists(place) and (place.is_symlink() or not place.is_dir()):
            return False
    target = folder / path
    return target.is_symlink() or not target.is_dir()
