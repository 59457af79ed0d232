"""What people read is written in `gpudev.texts` alone: everything that decides works with facts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.source_tree import MODULES, Module

LAYERS = ("domain", "app", "ports", "adapters")
DECIDING = [module for module in MODULES if module.name.split(".")[1:2] in [[layer] for layer in LAYERS]]

EXCEPTIONS = {
    "adapters/kubernetes/client.py": {"error looking up service account"},
    "adapters/local/sandbox/isolation.py": {"abi <abi/4.0>,"},
    "adapters/local/sandbox/sandbox.py": {"127.0.0.1 localhost"},
    "adapters/postgres/migrate.py": {"^-- include: pgmq sha256="},
}
"""Beginnings of what is not for people: an answer of Kubernetes that is recognised, files of programs."""

WORDS = re.compile(r"[a-z] [a-z]")
LEAST_SPACES = 2


def find_sentences(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Literals of three words or more, the parts of an f-string as one; documentation is not meant."""
    documentation = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and is_text(node.value)
    }
    parts = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    for node in ast.walk(tree):
        if id(node) in documentation | parts or not (is_text(node) or isinstance(node, ast.JoinedStr)):
            continue
        text = text_of(node)
        if WORDS.search(text) and text.count(" ") >= LEAST_SPACES:
            yield node.lineno, text


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def text_of(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if is_text(part) else "…" for part in node.values)
    return str(node.value)


@pytest.mark.parametrize("module", DECIDING, ids=lambda module: module.file)
def test_no_sentence_is_written_where_things_are_decided(module: Module) -> None:
    allowed = EXCEPTIONS.get(module.file, set())
    found = [
        f"line {line}: {text}"
        for line, text in find_sentences(module.tree)
        if not any(text.strip().startswith(beginning) for beginning in allowed)
    ]
    assert found == []


def test_every_exception_is_still_needed() -> None:
    needed = {
        (module.file, beginning)
        for module in DECIDING
        for beginning in EXCEPTIONS.get(module.file, set())
        for _, text in find_sentences(module.tree)
        if text.strip().startswith(beginning)
    }
    assert needed == {(file, beginning) for file, all_of in EXCEPTIONS.items() for beginning in all_of}


class TestTheRuleItself:
    @pytest.mark.parametrize(
        "source",
        [
            "message = 'Disk is gone.'",
            "raise Conflict(f'Disk {name} is in use.')",
            "words = f'{count} of them are waiting'",
            "hint = 'Release it with: gpu-dev cancel ID'",
        ],
    )
    def test_a_sentence_is_found(self, source: str) -> None:
        assert len(list(find_sentences(ast.parse(source)))) == 1

    def test_documentation_keys_and_names_are_not_meant(self) -> None:
        source = (
            '"""What a module is for."""\nfact("disk_in_use", name=f"{one}/{two}")\n"""A remark on it."""'
        )
        assert list(find_sentences(ast.parse(source))) == []
