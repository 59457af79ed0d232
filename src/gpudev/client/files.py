"""Files that only their owner may read, replaced as a whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from gpudev.client.errors import BrokenFile


def write_private(path: Path, text: str) -> None:
    """Write a 0600 file so that a reader sees the old contents or the new ones, never half of them."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A name of its own for each writer: threads of one process write the same file, too.
    draft = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        with open(draft, "w", encoding="utf-8", opener=_private) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise BrokenFile(f"{path} cannot be written: {error.strerror}.") from error


def read_json_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty if there is no such file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise BrokenFile(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise BrokenFile(f"{path} is not JSON: {error}.", hint="Correct the file or move it away.") from error
    if not isinstance(content, dict):
        raise BrokenFile(f"{path} does not hold a JSON object.", hint="Correct the file or move it away.")
    return content


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
