"""The one line in the user's own SSH configuration that makes every reservation a host: `ssh gpu-dev-train`.

It is written only on the user's word, and once. It comes first, because after a `Host` it would belong to it.
Cursor reads a file of its own besides; it gets the same line where Cursor is.
"""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from gpudev.client.config import Surroundings
from gpudev.client.errors import BrokenFile
from gpudev.client.files import write_private
from gpudev.client.ssh import CONFIG_SUFFIX

REMARK = "# The dev servers that gpu-dev lends you."


def list_files(surroundings: Surroundings) -> tuple[Path, ...]:
    """Where the line belongs."""
    cursor = surroundings.home / ".cursor"
    own = surroundings.ssh_dir / "config"
    return (own, cursor / "ssh_config") if cursor.is_dir() else (own,)


def include_line(surroundings: Surroundings) -> str:
    """OpenSSH knows the home by the user's entry, not by the environment; where they differ, `~` is wrong."""
    is_usual = surroundings.home == Path(pwd.getpwuid(os.getuid()).pw_dir)
    folder = f"~/{surroundings.state_dir.name}" if is_usual else str(surroundings.state_dir)
    pattern = f"{folder}/*{CONFIG_SUFFIX}"
    return f'Include "{pattern}"' if " " in pattern else f"Include {pattern}"


def is_included(surroundings: Surroundings) -> bool:
    """In every file where it belongs."""
    line = include_line(surroundings)
    return all(_has_line(_read(file), line) for file in list_files(surroundings))


def include(surroundings: Surroundings) -> tuple[Path, ...]:
    """Write the line where it is not yet. Returns the files that were changed."""
    line = include_line(surroundings)
    missing = [file for file in list_files(surroundings) if not _has_line(_read(file), line)]
    for file in missing:
        before = _read(file)
        _write(file, f"{REMARK}\n{line}\n" + (f"\n{before}" if before else ""))
    return tuple(missing)


def exclude(surroundings: Surroundings) -> tuple[Path, ...]:
    """Take the line out again; everything else stays as it is. Returns the files that were changed."""
    line = include_line(surroundings)
    present = [file for file in list_files(surroundings) if _has_line(_read(file), line)]
    for file in present:
        text = _read(file)
        whole = f"{REMARK}\n{line}\n"
        left = text.replace(f"{whole}\n", "").replace(whole, "")
        _write(file, "".join(kept for kept in left.splitlines(keepends=True) if kept.strip() != line))
    return tuple(present)


def _has_line(text: str, line: str) -> bool:
    return any(found.strip() == line for found in text.splitlines())


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise BrokenFile(f"{file} cannot be read: {error}.") from error


def _write(file: Path, text: str) -> None:
    """Where the file is a link, to a folder of settings say, what it leads to is written."""
    write_private(file.resolve(), text)
