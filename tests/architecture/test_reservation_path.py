"""The way of a reservation that the counts of `shape` are about is the one in the code."""

from __future__ import annotations

import ast

from tests.architecture.reservation_path import NOW, Path, list_missing
from tests.architecture.source_tree import ROOT

TREES = {
    file.relative_to(ROOT).as_posix(): ast.parse(file.read_text(encoding="utf-8"))
    for file in ROOT.rglob("*.py")
}


def test_every_step_is_in_the_code() -> None:
    assert list_missing(NOW, TREES) == []


def test_what_is_not_in_the_code_is_found() -> None:
    wrong = Path(("wire/jobs.py:Nothing",), ("nowhere.py:main",), ())
    assert list_missing(wrong, TREES) == ["wire/jobs.py:Nothing", "nowhere.py:main"]
