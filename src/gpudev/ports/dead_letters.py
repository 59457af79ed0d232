"""Messages that were given up: not ours, about something that is not there, or failed too often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from gpudev.domain.audit import AuditEntry


class QueueName(StrEnum):
    """The queues that have dead letters."""

    RESERVATIONS = "gpu_reservations"
    DISKS = "disk_operations"
    NOTIFICATIONS = "notifications"


@dataclass(frozen=True, slots=True)
class LetterId:
    queue: QueueName
    number: int
    """Within its queue."""

    @property
    def text(self) -> str:
        return f"{self.queue}-{self.number}"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    letter_id: LetterId
    message: str
    """As it was sent, in JSON; the beginning of one that is long."""
    error: str
    """Why it was given up; empty for one of an earlier version."""
    died_at: datetime


class DeadLetters(Protocol):
    async def bury(self, queue: QueueName, message_id: int, error: str) -> None:
        """Take a message out of its queue, and keep it with the error. Idempotent."""
        ...

    async def list_all(self, limit: int) -> tuple[DeadLetter, ...]:
        """The newest first."""
        ...

    async def retry(self, letter_id: LetterId, audit: AuditEntry) -> bool:
        """Send it again; False if there is none of this id."""
        ...

    async def drop(self, letter_id: LetterId, audit: AuditEntry) -> bool:
        """Delete it; False if there is none of this id."""
        ...

    async def count(self) -> Mapping[QueueName, int]: ...
