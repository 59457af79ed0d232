"""The words for each fact. A key belongs to one module; a test finds keys that are missing or not used."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gpudev.texts.tables import (
    administration,
    answers,
    audit,
    aws,
    cluster,
    database,
    dead_letters,
    disk_events,
    disks,
    events,
    github,
    identity,
    machine,
    notices,
    plain,
    reasons,
    requests,
    reservations,
    simulation,
    startup,
    storage,
    waiting,
    warnings,
    webhook,
)
from gpudev.texts.template import Text

_TABLES = (
    administration.TEXTS,
    answers.TEXTS,
    audit.TEXTS,
    aws.TEXTS,
    cluster.TEXTS,
    database.TEXTS,
    dead_letters.TEXTS,
    disk_events.TEXTS,
    disks.TEXTS,
    events.TEXTS,
    github.TEXTS,
    identity.TEXTS,
    machine.TEXTS,
    notices.TEXTS,
    plain.TEXTS,
    reasons.TEXTS,
    requests.TEXTS,
    reservations.TEXTS,
    simulation.TEXTS,
    startup.TEXTS,
    storage.TEXTS,
    waiting.TEXTS,
    warnings.TEXTS,
    webhook.TEXTS,
)

TEXTS: Mapping[str, Text] = MappingProxyType({key: text for table in _TABLES for key, text in table.items()})
