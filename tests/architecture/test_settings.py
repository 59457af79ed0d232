"""Every setting is documented: beside its field, and on the reference page made from that text."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic_settings import BaseSettings

from gpudev.settings import GROUPS, Settings
from tests.support.golden import check_file

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"
INTRODUCTION = """\
# Settings

The server reads these from its environment, once, when it starts. `gpu-dev up` sets most of them for the
processes that it starts. This page is made from `src/gpudev/settings`.
"""


def describe(group: type[BaseSettings]) -> str:
    rows = [f"\n## {group.__name__.removesuffix('Settings')}\n\n{group.__doc__}\n"]
    rows += ["| variable | default | meaning |", "|---|---|---|"]
    for field in group.model_fields.values():
        is_said = not field.default_factory and str(field.default) not in {"None", "", "-1"}
        default = f"`{field.default}`" if is_said else ""
        meaning = " ".join((field.description or "").split())
        rows.append(f"| `{field.validation_alias}` | {default} | {meaning} |")
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_every_field_says_what_it_is_for(group: type[BaseSettings]) -> None:
    for name, field in group.model_fields.items():
        assert field.description, name
        assert isinstance(field.validation_alias, str), name


def test_every_group_is_listed() -> None:
    assert {type(getattr(Settings(), name)) for name in Settings.__slots__} == set(GROUPS)


def test_the_reference_page_is_complete() -> None:
    check_file(PAGE, INTRODUCTION + "".join(describe(group) for group in GROUPS))
