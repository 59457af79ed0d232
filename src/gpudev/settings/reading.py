"""How every group reads the environment."""

from __future__ import annotations

from pydantic_settings import SettingsConfigDict

CONFIG = SettingsConfigDict(use_attribute_docstrings=True, populate_by_name=True, frozen=True)


def split(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split(",") if part.strip())
