"""Facts as the words that people read, for tests that describe those."""

from __future__ import annotations

from gpudev.texts.fact import Fact, fact
from gpudev.texts.sentences import say


def words_of(told: Fact | None) -> str:
    """With times in UTC; empty where nothing is told."""
    return "" if told is None else say(told)


def told_as(words: str) -> Fact | None:
    """A fact of which only the words matter."""
    return fact("words", words=words) if words else None
