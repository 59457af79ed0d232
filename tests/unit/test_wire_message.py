"""Messages are frozen dataclasses with keywords, made without generated code."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, field, fields, is_dataclass, replace

import pytest

from gpudev.wire.message import message


@message
class Thing:
    name: str
    size: int = 3
    parts: list[str] = field(default_factory=list)


def test_it_is_a_dataclass_to_others() -> None:
    assert is_dataclass(Thing)
    assert [each.name for each in fields(Thing)] == ["name", "size", "parts"]
    assert replace(Thing(name="a"), size=4) == Thing(name="a", size=4)


def test_defaults_are_of_each_one_alone() -> None:
    first, second = Thing(name="a"), Thing(name="a")
    assert (first, first.size, first.parts) == (second, 3, [])
    assert first.parts is not second.parts


def test_equality_is_by_kind_and_content() -> None:
    assert Thing(name="a") != Thing(name="b")
    assert Thing(name="a") != {"name": "a", "size": 3, "parts": []}
    assert repr(Thing(name="a")) == "Thing(name='a', size=3, parts=[])"


def test_it_cannot_be_changed() -> None:
    thing = Thing(name="a")
    with pytest.raises(FrozenInstanceError):
        thing.name = "b"  # type: ignore[misc]  # that is the point
    with pytest.raises(FrozenInstanceError):
        del thing.name


@pytest.mark.parametrize(
    "given, words", [({}, "Thing needs name"), ({"name": "a", "colour": 1}, "Thing does not know colour")]
)
def test_what_does_not_fit_is_named(given: dict[str, object], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        Thing(**given)  # type: ignore[arg-type]  # the wrong ones are wanted
