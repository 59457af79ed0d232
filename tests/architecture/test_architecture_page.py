"""docs/architecture.md lists what there is: every layer, every port and every action of the plans."""

from __future__ import annotations

import re
import types
from pathlib import Path
from typing import get_args

import pytest

from gpudev.domain.plans import disk_turn, turn
from tests.architecture.source_tree import MODULES, ROOT
from tests.architecture.test_imports import KNOWS_EVERYBODY, RULES, layer_of

PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
LAYERS = {layer_of(module.name) for module in MODULES} & {*RULES, KNOWS_EVERYBODY}
PORTS = {path.stem for path in (ROOT / "ports").glob("*.py")} - {"__init__"}


def list_actions(module: types.ModuleType) -> set[str]:
    """The classes of the closed unions of a module."""
    unions = [value for value in vars(module).values() if isinstance(value, types.UnionType)]
    return {
        kind.__name__ for union in unions for kind in get_args(union) if kind.__module__ == module.__name__
    }


def words_of(heading: str) -> set[str]:
    """What is written as code in a section, or in the row of a table that begins with this."""
    start = PAGE.index(heading)
    end = PAGE.find("\n", start) if heading.startswith("|") else PAGE.find("\n## ", start)
    return {
        word for span in re.findall("`([^`]+)`", PAGE[start:end]) for word in re.findall(r"[\w/.]+", span)
    }


@pytest.mark.parametrize("layer", sorted(LAYERS))
def test_every_layer_is_listed(layer: str) -> None:
    assert layer.replace(".", "/") in words_of("## Layers")


def test_the_ports_are_those_of_the_code() -> None:
    assert words_of("| `ports` |") - {"ports", "domain"} == PORTS


@pytest.mark.parametrize("module", [turn, disk_turn], ids=["reservations", "disks"])
def test_the_actions_are_listed(module: types.ModuleType) -> None:
    listed = list_actions(module)
    assert len(listed) > 5
    assert listed <= words_of("## A turn: four phases") | words_of("## Disks")


def test_no_action_is_listed_that_is_gone() -> None:
    start = PAGE.index("The actions are a closed union")
    named = set(re.findall(r"`([A-Z]\w+)`", PAGE[start : PAGE.index("Their order", start)]))
    assert named == list_actions(turn)
