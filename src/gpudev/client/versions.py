"""Whether this client and the server go together: of a newer server is warned, one too new is refused."""

from __future__ import annotations

import re
from enum import StrEnum

UPGRADE = "Upgrade with: pip install --upgrade gpu-dev"


class OutdatedClient(UserWarning):
    """The server is of a newer version. All that both know still works."""


class Verdict(StrEnum):
    FINE = "fine"
    OLD = "old"
    TOO_OLD = "too old"


def judge(ours: str, theirs: str, oldest_client: str) -> Verdict:
    """A client may be newer than its server; corrections of one minor version are not worth a word."""
    if _parse(ours) < _parse(oldest_client):
        return Verdict.TOO_OLD
    return Verdict.OLD if _parse(ours)[:2] < _parse(theirs)[:2] else Verdict.FINE


def _parse(version: str) -> tuple[int, ...]:
    """`1.2.3rc1` is (1, 2, 3)."""
    matched = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in matched.group().split(".")) if matched else ()
