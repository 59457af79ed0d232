"""The API keys we were given, kept in one 0600 file, by the address of the server that gave them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from gpudev.client.files import read_json_object, write_private

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
