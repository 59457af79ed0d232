"""Status says where, reason says why: every reason has words for the user, and says what to do next."""

from __future__ import annotations

import pytest

from gpudev.domain.reasons import EXPLANATIONS, Reason


@pytest.mark.parametrize("reason", Reason, ids=str)
def test_every_reason_has_a_sentence_and_a_hint(reason: Reason) -> None:
    explanation = EXPLANATIONS[reason]
    assert explanation.sentence[0].isupper()
    assert explanation.sentence.endswith(".")
    assert explanation.hint


def test_sentences_tell_the_reasons_apart() -> None:
    sentences = [explanation.sentence for explanation in EXPLANATIONS.values()]
    assert len(set(sentences)) == len(sentences)
