"""The words for each fact. A key belongs to one module; a test finds keys that are missing or not used."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gpudev.texts.tables import database, plain
from gpudev.texts.template import Text

_TABLES = (database.TEXTS, plain.TEXTS)

TEXTS: Mapping[str, Text] = MappingProxyType({key: text for table in _TABLES for key, text in table.items()})
