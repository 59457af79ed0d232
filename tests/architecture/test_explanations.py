"""Status says where, reason says why: every reason has words for the user, and says what to do next."""

from __future__ import annotations

import pytest

from gpudev.texts.fact import reason_fact
from gpudev.texts.sentences import advise, say
from gpudev.texts.tables import reasons
from gpudev.texts.vocabulary import Reason


@pytest.mark.parametrize("reason", Reason, ids=str)
def test_every_reason_has_a_sentence_and_a_hint(reason: Reason) -> None:
    sentence = say(reason_fact(reason))
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert advise(reason_fact(reason))


def test_sentences_tell_the_reasons_apart() -> None:
    assert len({say(reason_fact(reason)) for reason in Reason}) == len(Reason)


def test_every_text_of_a_reason_belongs_to_one() -> None:
    assert set(reasons.REASONS) == {reason_fact(reason).key for reason in Reason}
