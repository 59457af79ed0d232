"""Messages that were given up, on the wire, for admins."""

from __future__ import annotations

from datetime import datetime

from gpudev.wire.message import message


@message
class DeadLetterDetail:
    letter_id: str
    """Its id: the queue that it was in, and a number."""
    queue: str
    """gpu_reservations, disk_operations or notifications."""
    message: str
    """As it was sent, in JSON; at most the first 2000 characters."""
    error: str
    """Why it was given up; empty if it was given up by an earlier version."""
    died_at: datetime
    """When it was given up."""


@message
class DeadLetterList:
    dead_letters: list[DeadLetterDetail]
    """The newest first, at most 1000."""


@message
class DeadLetterChanged:
    letter_id: str
    """Which one."""
    message: str
    """What was done."""
