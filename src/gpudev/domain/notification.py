"""What people want to hear of, where it goes, and when it is tried again."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gpudev.domain.errors import Invalid
from gpudev.domain.names import UserId
from gpudev.texts.vocabulary import TOPIC_OF, TargetKind, Topic

MOST_TRIES = 8
_FIRST_PAUSE = timedelta(seconds=2)
_LONGEST_PAUSE = timedelta(minutes=10)
_LONGEST_ADDRESS = 1000
_ADDRESS = re.compile(r"([A-Za-z]+)://([A-Za-z0-9._:\[\]-]+)([/?#][!-~]*)?")
"""Only ASCII that is printable, without spaces, and no user before the host."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where somebody wants to hear of what."""

    user_id: UserId
    kind: TargetKind
    url: str
    topics: frozenset[Topic]
    secret: str = field(default="", repr=False)
    """By which a webhook knows that it was us."""


@dataclass(frozen=True, slots=True)
class Notification:
    """One thing to tell. The id is the same at every try, so that a receiver can tell repeats."""

    delivery_id: str
    event: str
    username: str
    reservation_id: str
    name: str
    gpu_type: str
    gpu_count: int
    status: str
    message: str
    at: datetime


def wants(target: Target, event: str, *, is_test: bool = False) -> bool:
    return is_test or TOPIC_OF.get(event) in target.topics


def find_pause(tries: int) -> timedelta | None:
    """How long to wait after so many tries in vain; None: not again."""
    if tries >= MOST_TRIES:
        return None
    return min(_LONGEST_PAUSE, _FIRST_PAUSE * (1 << tries))


def _split_address(url: str) -> tuple[str, str]:
    """Scheme, and host with its port."""
    found = _ADDRESS.fullmatch(url) if len(url) <= _LONGEST_ADDRESS else None
    if found is None:
        raise Invalid("bad_notification_address", longest=_LONGEST_ADDRESS, code="bad_address")
    return found[1].lower(), found[2]


def check_address(url: str, allowed: Collection[str]) -> None:
    """Only an address that HTTP can carry as it is, and only where the operator allows.

    Without TLS only to this very machine.
    """
    scheme, host = _split_address(url)
    if host.lower() not in allowed:
        raise Invalid(
            "notification_host_not_allowed", host=host, allowed=sorted(allowed), code="host_not_allowed"
        )
    is_here = host.partition(":")[0] in {"127.0.0.1", "localhost"}
    if scheme != "https" and not (scheme == "http" and is_here):
        raise Invalid("notification_address_without_tls", code="bad_address")
