"""Files that only their owner may read, replaced as a whole or not at all; one of them has the API keys."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime, timedelta
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


MARGIN = timedelta(minutes=1)
"""A key with less life than this is not used any more: it could end on the way."""


@dataclass(frozen=True, slots=True)
class Credentials:
    path: Path

    def find_key(self, api_url: str, now: datetime) -> str | None:
        entry = read_json_object(self.path).get(api_url)
        return _usable_key(entry, now) if isinstance(entry, dict) else None

    def find_expiry(self, api_url: str) -> datetime | None:
        """When the key for this server ends; None if there is none."""
        entry = read_json_object(self.path).get(api_url)
        expires_at = entry.get("expires_at") if isinstance(entry, dict) else None
        return datetime.fromisoformat(expires_at) if isinstance(expires_at, str) else None

    def keep_key(self, api_url: str, api_key: str, expires_at: datetime) -> None:
        entry = {"api_key": api_key, "expires_at": expires_at.isoformat()}
        content = {**read_json_object(self.path), api_url: entry}
        write_private(self.path, json.dumps(content, indent=2) + "\n")


def _usable_key(entry: dict[str, Any], now: datetime) -> str | None:
    api_key, expires_at = entry.get("api_key"), entry.get("expires_at")
    if not isinstance(api_key, str) or not isinstance(expires_at, str):
        return None
    return api_key if datetime.fromisoformat(expires_at) > now + MARGIN else None
