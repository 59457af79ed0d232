"""Which stage of a start runs: by the keys of events, whatever their words are."""

from __future__ import annotations

import pytest

from gpudev.cli.stages import Stages, advance
from tests.support.wire_values import an_event

FETCHING = {"key": "image_fetching", "data": {"image": "dev:1"}}


def test_a_stage_is_the_same_whatever_the_name_of_the_image() -> None:
    one = advance(
        Stages("h100"), an_event(1, "progress", "preparing", "Fetching the image: dev:1.", **FETCHING)
    )
    words = "Das Abbild wird geholt: dev:2."
    other = advance(Stages("h100"), an_event(1, "progress", "preparing", words, **FETCHING))
    assert one.current == other.current == "h100/image_fetching"
    assert (one.title, other.title) == ("Fetching the image: dev:1", "Das Abbild wird geholt: dev:2")


def test_what_one_member_of_a_gang_does_is_the_same_stage() -> None:
    told = {"key": "member_told", "data": {"member": "gpu-dev-1", "node": "b", "what": FETCHING}}
    event = an_event(1, "progress", "preparing", "gpu-dev-1 on b: Fetching the image: dev:1.", **told)
    assert advance(Stages("h100"), event).current == "h100/image_fetching"


@pytest.mark.parametrize("words", ["Fetching the image: dev:1.", "The container runs."])
def test_a_server_that_tells_only_words_has_one_stage_for_them(words: str) -> None:
    event = an_event(1, "progress", "preparing", words)
    assert advance(Stages("h100"), event).current == "h100/progress"
