"""Messages that say "look at this one", signals that say "now", and messages that were given up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from gpudev.domain.audit import AuditEntry


class Channel(StrEnum):
    """What a signal is about; the payload names the one to look at."""

    MESSAGES = "gpu_dev_messages"
    """A message was sent; the payload is the queue's name."""
    TURN = "gpu_dev_turn"
    """An item wants its turn; the payload is its kind and its key."""
    ADMISSION = "gpu_dev_admission"
    """A GPU type wants an admission pass; the payload is its name."""
    EVENT = "gpu_dev_event"
    """An event was appended; the payload is the reservation's id."""
    KEYS = "gpu_dev_keys"
    """API keys were revoked; the payload is their user's id, or empty for those of all users."""


@dataclass(frozen=True, slots=True)
class Signal:
    channel: Channel
    payload: str


@dataclass(frozen=True, slots=True)
class Message:
    message_id: int
    key: str
    """Of the item to look at."""
    tries: int = 1
    """How often it was read, this time included."""


class MessageQueue(Protocol):
    """Durable messages about items of one kind.

    One that was read stays hidden for a while and comes back unless it is archived.
    """

    async def read(self, limit: int) -> tuple[Message, ...]:
        """What is not a message of ours is put with the dead letters instead."""
        ...

    async def bury(self, message_ids: Sequence[int], error: str) -> None:
        """Put these with the dead letters. Idempotent."""
        ...

    async def archive(self, message_ids: Sequence[int]) -> None:
        """Done with these. Idempotent."""
        ...

    async def count(self) -> int:
        """How many messages wait or are being worked on."""
        ...


class Signals(Protocol):
    """Hints between processes. They are not kept: who is not listening misses them."""

    def listen(self, *channels: Channel) -> AsyncIterator[Signal | None]:
        """Signals as they come. None means "some may have been missed": after connecting, each time."""
        ...


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

    async def count(self) -> Mapping[QueueName, int]:
        """How many there are in each queue."""
        ...
