"""The sentence and the hint of a fact, for a reader in one time zone."""

from __future__ import annotations

from datetime import UTC, tzinfo

from gpudev.texts.fact import Fact
from gpudev.texts.tables import TEXTS
from gpudev.texts.template import Text, Values, fill


def say(fact: Fact, zone: tzinfo = UTC) -> str:
    """What is the case."""
    return fill(_text_of(fact).sentence, _values_of(fact, zone))


def advise(fact: Fact, zone: tzinfo = UTC) -> str:
    """What the reader can do; empty: nothing."""
    return fill(_text_of(fact).hint, _values_of(fact, zone))


def _values_of(fact: Fact, zone: tzinfo) -> Values:
    def write(inner: Fact, is_hint: bool) -> str:  # noqa: FBT001 - not called by name
        return advise(inner, zone) if is_hint else say(inner, zone)

    return Values(fact.data, zone, write)


def _text_of(fact: Fact) -> Text:
    """One without a text in this version of gpu-dev is shown with its data, instead of not at all."""
    known = TEXTS.get(fact.key)
    if known is not None:
        return known
    data = ", ".join(f"{name}: {value}" for name, value in fact.data.items())
    return Text(lambda _: f"{fact.key} ({data})")
