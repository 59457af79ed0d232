"""Labels that may be asked for."""

from __future__ import annotations

import pytest

from gpudev.domain.capacity import check_labels, has_labels, in_short
from gpudev.domain.errors import Invalid

OFFERED = {"nsight": frozenset({"true"}), "zone": frozenset({"a", "b"})}


def test_what_is_on_the_list_may_be_asked_for() -> None:
    assert check_labels({"nsight": "true", "zone": "b"}, OFFERED) == {"nsight": "true", "zone": "b"}


@pytest.mark.parametrize(
    "asked, words, hint",
    [
        ({"colour": "red"}, '"colour"', "nsight=true, zone=a or zone=b"),
        ({"zone": "c"}, 'not "c"', "zone=a or zone=b"),
    ],
)
def test_anything_else_is_refused_with_the_choices(asked: dict[str, str], words: str, hint: str) -> None:
    with pytest.raises(Invalid, match=words) as refused:
        check_labels(asked, OFFERED)
    assert (refused.value.code, hint in refused.value.hint) == ("unknown_node_label", True)


def test_where_nothing_is_offered_nothing_can_be_asked() -> None:
    with pytest.raises(Invalid) as refused:
        check_labels({"nsight": "true"}, {})
    assert refused.value.hint == "Leave out --node-label."


def test_a_node_must_have_all_of_them() -> None:
    assert has_labels({"a": "1", "b": "2"}, {"a": "1"})
    assert not has_labels({"a": "1"}, {"a": "1", "b": "2"})
    assert not has_labels({"a": "1"}, {"a": "2"})
    assert in_short({"b": "2", "a": "1"}) == "a=1, b=2"
