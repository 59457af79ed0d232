"""The sentence and the hint of a fact, for a reader in one time zone."""

from __future__ import annotations

from datetime import UTC, tzinfo

from gpudev.texts.fact import Fact
from gpudev.texts.tables import TEXTS
from gpudev.texts.template import Template, Values, fill


def say(fact: Fact, zone: tzinfo = UTC) -> str:
    """What is the case.

    Facts are stored and outlive versions: one without a text here, or whose data do not fit its text, is
    shown with its key and data, so that it never keeps others from being shown.
    """
    text = TEXTS.get(fact.key)
    written = _write(text.sentence, fact, zone) if text is not None else None
    return _show_bare(fact) if written is None else written


def advise(fact: Fact, zone: tzinfo = UTC) -> str:
    """What the reader can do; empty: nothing."""
    text = TEXTS.get(fact.key)
    return (_write(text.hint, fact, zone) if text is not None else None) or ""


def _write(template: Template, fact: Fact, zone: tzinfo) -> str | None:
    """None: the data are not those that the template needs."""

    def write(inner: Fact, is_hint: bool) -> str:  # noqa: FBT001 - not called by name
        return advise(inner, zone) if is_hint else say(inner, zone)

    try:
        return fill(template, Values(fact.data, zone, write))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None


def _show_bare(fact: Fact) -> str:
    data = ", ".join(f"{name}: {value}" for name, value in fact.data.items())
    return f"{fact.key} ({data})"
