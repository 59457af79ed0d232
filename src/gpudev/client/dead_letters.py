"""What admins ask of the API about dead letters, one method each."""

from __future__ import annotations

from typing import Protocol, TypeVar
from urllib.parse import quote

from gpudev.wire.dead_letters import DeadLetterChanged, DeadLetterList

T = TypeVar("T")


class Caller(Protocol):
    """The part of a session that is needed here."""

    def call(self, kind: type[T], method: str, path: str) -> T: ...


class DeadLetters:
    def __init__(self, session: Caller) -> None:
        self._session = session

    def list(self) -> DeadLetterList:
        """Messages that were given up, the newest first."""
        return self._session.call(DeadLetterList, "GET", "/v1/admin/dead-letters")

    def retry(self, letter_id: str) -> DeadLetterChanged:
        """Send it again."""
        return self._session.call(DeadLetterChanged, "POST", f"{_path(letter_id)}/retry")

    def drop(self, letter_id: str) -> DeadLetterChanged:
        """Delete it."""
        return self._session.call(DeadLetterChanged, "POST", f"{_path(letter_id)}/drop")


def _path(letter_id: str) -> str:
    return f"/v1/admin/dead-letters/{quote(letter_id, safe='')}"
