"""The domain decides from values alone: no I/O, no clock, no chance, no logging, nothing asynchronous."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.source_tree import MODULES, Module

DOMAIN = [module for module in MODULES if module.name.startswith("gpudev.domain")]
STANDARD_LIBRARY = {
    "__future__",
    "bisect",
    "collections",
    "collections.abc",
    "dataclasses",
    "datetime",
    "difflib",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "heapq",
    "itertools",
    "json",
    "math",
    "re",
    "types",
    "typing",
}
ASYNCHRONOUS = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await)
READS_A_CLOCK = {"now", "utcnow", "today"}
DOES_INPUT_OR_OUTPUT = {"open", "print", "input", "exec", "eval", "__import__"}

every_module = pytest.mark.parametrize("module", DOMAIN, ids=lambda module: module.file)


@every_module
def test_domain_imports_only_pure_parts_of_the_standard_library(module: Module) -> None:
    foreign = {
        made.target
        for made in module.imports
        if not made.target.startswith(("gpudev.domain", "gpudev.texts"))
    }
    assert foreign <= STANDARD_LIBRARY


@every_module
def test_domain_has_nothing_asynchronous(module: Module) -> None:
    assert not [node for node in ast.walk(module.tree) if isinstance(node, ASYNCHRONOUS)]


@every_module
def test_domain_is_told_the_time_and_never_asks_for_it(module: Module) -> None:
    calls = [node.func for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
    asked = [
        ast.unparse(call) for call in calls if isinstance(call, ast.Attribute) and call.attr in READS_A_CLOCK
    ]
    assert asked == []


@every_module
def test_domain_does_no_input_or_output(module: Module) -> None:
    calls = [node.func for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
    assert not [call.id for call in calls if isinstance(call, ast.Name) and call.id in DOES_INPUT_OR_OUTPUT]


@every_module
def test_values_of_the_domain_cannot_be_changed(module: Module) -> None:
    dataclasses = [
        (node.name, ast.unparse(decorator))
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
        for decorator in node.decorator_list
        if "dataclass" in ast.unparse(decorator)
    ]
    assert [name for name, decorator in dataclasses if "frozen=True" not in decorator] == []
