"""Facts and their texts fit together: each key has one text, each text is used and gets all of its data."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from string import Formatter

import pytest

from gpudev.domain import errors
from gpudev.texts.fact import reason_fact
from gpudev.texts.tables import _TABLES, TEXTS
from gpudev.texts.vocabulary import Reason
from tests.architecture.source_tree import MODULES, Module

MAKERS = {"fact"} | {
    name
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.GpuDevError)
}
"""What is called with the key of a text and its data, besides `OWN_ERRORS`."""

OWN_ERRORS = {
    node.name
    for module in MODULES
    for node in ast.walk(module.tree)
    if isinstance(node, ast.ClassDef) and {getattr(base, "id", "") for base in node.bases} & MAKERS
}
"""Errors that ports and adapters derive from those of the domain."""


@dataclass(frozen=True)
class Use:
    key: str
    line: int
    data: frozenset[str] | None
    """None: not known before it runs."""


def find_uses(tree: ast.AST, makers: Collection[str] = MAKERS | OWN_ERRORS) -> Iterator[Use]:
    """With a literal key; one that is put together is no key either."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        key = node.args[0]
        if name in makers and isinstance(key, ast.Constant | ast.JoinedStr):
            names = [keyword.arg for keyword in node.keywords]
            known = frozenset(name for name in names if name is not None)
            written = str(key.value) if isinstance(key, ast.Constant) else ast.unparse(key)
            yield Use(written, node.lineno, known if None not in names else None)


def find_wrong(use: Use) -> str:
    if use.key not in TEXTS:
        return f"line {use.line}: no text for {use.key}"
    wanted = {
        field for template in (TEXTS[use.key].sentence, TEXTS[use.key].hint) for field in fields_of(template)
    }
    missing = sorted(wanted - use.data) if use.data is not None else []
    return f"line {use.line}: {use.key} lacks {', '.join(missing)}" if missing else ""


def fields_of(template: object) -> set[str]:
    """What a written template needs; a function takes what it finds."""
    if not isinstance(template, str):
        return set()
    return {name for _, name, _, _ in Formatter().parse(template) if name}


OUTSIDE = [module for module in MODULES if not module.name.startswith("gpudev.texts")]


@pytest.mark.parametrize("module", OUTSIDE, ids=lambda module: module.file)
def test_each_fact_has_a_text_and_the_data_for_it(module: Module) -> None:
    # The errors of the client have the names of ours, and the words that the server sent.
    has_own_errors = module.name.startswith(("gpudev.client", "gpudev.cli"))
    uses = find_uses(module.tree, {"fact"}) if has_own_errors else find_uses(module.tree)
    assert [wrong for use in uses if (wrong := find_wrong(use))] == []


def test_each_text_is_used() -> None:
    constants = {
        node.value
        for module in OUTSIDE
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    reasons = {reason_fact(reason).key for reason in Reason}
    assert sorted(set(TEXTS) - constants - reasons - {"words", "sentences"}) == []


def test_each_key_is_in_one_table() -> None:
    keys = Counter(key for table in _TABLES for key in table)
    assert [key for key, count in keys.items() if count > 1] == []


class TestTheRuleItself:
    def test_missing_text_and_missing_data_are_found(self) -> None:
        tree = ast.parse("fact('no_such_key'); errors.NotFound('words'); NotFound('words', words='x')")
        assert [find_wrong(use) for use in find_uses(tree)] == [
            "line 1: no text for no_such_key",
            "line 1: words lacks words",
            "",
        ]

    def test_a_sentence_is_no_key(self) -> None:
        tree = ast.parse("NotFound('No such disk.'); Conflict(f'Disk {name} is in use.')")
        assert [find_wrong(use) for use in find_uses(tree)] == [
            "line 1: no text for No such disk.",
            "line 1: no text for f'Disk {name} is in use.'",
        ]
