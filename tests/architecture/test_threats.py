"""The page of threats and the tests agree: every test that it names exists, and no threat is untested."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "threats.md"
_TEST = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")
_MARK = "threat"


def read_rows() -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    table = text.partition("## Threats and their tests")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    return rows[1:]


ROWS = read_rows()
NAMED = [(path, name) for row in ROWS for path, name in _TEST.findall(row)]


@cache
def list_tests(path: str) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """The tests of a file as pytest names them, without their parameters."""
    found = {}
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        for member in members:
            if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) and member.name.startswith("test_"):
                found[prefix + member.name] = member
    return found


def is_marked(test: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    marks = [one.func if isinstance(one, ast.Call) else one for one in test.decorator_list]
    return any(ast.unparse(mark) == f"pytest.mark.{_MARK}" for mark in marks)


@pytest.mark.parametrize("path, name", NAMED, ids=lambda value: str(value).rpartition("/")[2])
def test_every_test_on_the_page_exists(path: str, name: str) -> None:
    assert (ROOT / path).is_file(), f"{path} is not there."
    assert name in list_tests(path), f"{path} has no test {name}."


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:50])
def test_every_threat_has_an_actor_and_a_test(row: str) -> None:
    _, threat, actor, tests, _ = row.split("|")
    assert threat.strip()
    assert actor.strip()
    assert _TEST.search(tests)


def test_every_marked_test_is_on_the_page() -> None:
    marked = {
        (str(file.relative_to(ROOT)), name)
        for file in (ROOT / "tests").rglob("test_*.py")
        if f"mark.{_MARK}" in file.read_text(encoding="utf-8") and file != Path(__file__)
        for name, test in list_tests(str(file.relative_to(ROOT))).items()
        if is_marked(test)
    }
    assert marked
    assert marked - set(NAMED) == set()


def test_no_threat_is_listed_twice() -> None:
    threats = [row.split("|")[1].strip() for row in ROWS]
    assert len(threats) == len(set(threats))
