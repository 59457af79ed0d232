"""The words for each fact. A key belongs to one module; a test finds keys that are missing or not used."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gpudev.texts.tables import (
    administration,
    answers,
    cluster,
    database,
    disks,
    identity,
    machine,
    reasons,
    requests,
    reservations,
    startup,
)
from gpudev.texts.template import Text

_TABLES = (
    administration.TEXTS,
    answers.TEXTS,
    cluster.TEXTS,
    database.TEXTS,
    disks.TEXTS,
    identity.TEXTS,
    machine.TEXTS,
    reasons.TEXTS,
    requests.TEXTS,
    reservations.TEXTS,
    startup.TEXTS,
)

TEXTS: Mapping[str, Text] = MappingProxyType({key: text for table in _TABLES for key, text in table.items()})
