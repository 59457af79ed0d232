"""Telling people elsewhere what happened to their reservations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from gpudev.domain.errors import Unavailable
from gpudev.domain.names import UserId
from gpudev.domain.notification import Notification, Target
from gpudev.texts.fact import Value


class NotDelivered(Unavailable):
    """The other side did not take it. `is_final`: it said no, and would say so again."""

    default_code = "not_delivered"

    def __init__(self, key: str, /, *, is_final: bool = False, **data: Value) -> None:
        super().__init__(key, code="", retry_after=None, **data)
        self.is_final = is_final


@dataclass(frozen=True, slots=True)
class Delivery:
    """A notification with its place in the queue, its target, and how often it was tried before."""

    message_id: int
    notification: Notification
    target: Target | None
    """None if its user has unset it meanwhile."""
    tries: int
    is_test: bool = False
    is_ours: bool = True
    """False for a message that tells neither of an event nor of a test."""


class Notifier(Protocol):
    async def send(self, target: Target, notification: Notification) -> None:
        """Deliver once, in seconds, or raise `NotDelivered`. Follows nobody elsewhere."""
        ...


class Notifications(Protocol):
    """Targets, and the queue of what is to be sent.

    Whatever is appended to the history of a reservation whose owner has a target is in the queue, in the
    same transaction.
    """

    async def find_target(self, user_id: UserId) -> Target | None:
        """Where a user wants to be notified; None: nowhere."""
        ...

    async def set_target(self, target: Target) -> None:
        """Notify a user there, and nowhere else."""
        ...

    async def unset_target(self, user_id: UserId) -> None:
        """Idempotent."""
        ...

    async def send_test(self, user_id: UserId) -> None:
        """Put a notification that is none into the queue."""
        ...

    async def read(self, limit: int, hidden_for: timedelta) -> tuple[Delivery, ...]:
        """What is due, hidden from other readers for a while; what is not archived then comes back."""
        ...

    async def retry_after(self, message_id: int, pause: timedelta) -> None:
        """Hide a message for a while, then read it again."""
        ...

    async def bury(self, message_id: int, error: str) -> None:
        """Put it with the dead letters. Idempotent."""
        ...

    async def archive(self, message_ids: Sequence[int]) -> None:
        """Take messages that are done out of the queue."""
        ...
