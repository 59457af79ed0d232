"""Use cases are named methods, grouped by noun; routes call them and reach nothing behind them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, get_type_hints

import pytest

from gpudev.app.application import Application
from tests.architecture.source_tree import MODULES, Module

MAX_FIELDS = 16

USE_CASES: dict[str, type] = {
    name: kind for name, kind in get_type_hints(Application).items() if isinstance(kind, type)
}
_REACH = re.compile(r"(?:\b_?app|application|application_of\(\w+\))\.(\w+)\.(\w+)")
"""How code of the API names the part of a use case: `app.reservations.find`, `self._app.disks.get`."""


def list_reached(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The field of the application and the attribute of it, for each use of one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (found := _REACH.search(ast.unparse(node))):
            yield found[1], found[2]


def is_behind(kind: type, attribute: str) -> bool:
    """Whether the attribute is a part that the use case works with: a port or an object, not a value."""
    hint: Any = get_type_hints(kind).get(attribute)
    return hint is not None and any(
        word.startswith(("gpudev.ports.", "gpudev.app.")) for word in re.findall(r"[\w.]+", qualified(hint))
    )


def qualified(hint: object) -> str:
    return f"{hint.__module__}.{hint.__qualname__}" if isinstance(hint, type) else str(hint)


of_the_api = pytest.mark.parametrize(
    "module", [one for one in MODULES if one.file.startswith("api/")], ids=lambda one: one.file
)
of_the_app = pytest.mark.parametrize(
    "module", [one for one in MODULES if one.file.startswith("app/")], ids=lambda one: one.file
)


@of_the_api
def test_routes_reach_nothing_behind_a_use_case(module: Module) -> None:
    reached = [
        f"{field}.{attribute}"
        for field, attribute in list_reached(module.tree)
        if field in USE_CASES and is_behind(USE_CASES[field], attribute)
    ]
    assert reached == []


def test_the_application_has_use_cases_and_no_port() -> None:
    hints = get_type_hints(Application)
    assert [name for name, hint in hints.items() if "gpudev.ports." in qualified(hint)] == []
    assert len([name for name in hints if name in USE_CASES]) >= 8


@pytest.mark.parametrize(
    "source, is_wrong",
    [
        ("await app.reservations.store.get(x)", True),
        ("await self._app.identity.users.list_all()", True),
        ("application_of(request).gpu_types.gpu_types", True),
        ("await app.reservations.find(caller, x)", False),
        ("app.notifications.allowed_hosts", False),
    ],
)
def test_what_is_behind_a_use_case_is_found(source: str, *, is_wrong: bool) -> None:
    reached = [
        is_behind(USE_CASES[field], attribute)
        for field, attribute in list_reached(ast.parse(source))
        if field in USE_CASES
    ]
    assert reached
    assert any(reached) is is_wrong


@of_the_app
def test_what_the_application_does_has_a_name(module: Module) -> None:
    callable_classes = [
        node.name
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
        and any(getattr(item, "name", "") == "__call__" for item in node.body)
    ]
    assert callable_classes == []


def list_large(tree: ast.AST) -> list[str]:
    return [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
        and sum(isinstance(item, ast.AnnAssign) for item in node.body) > MAX_FIELDS
    ]


def test_no_dataclass_outside_the_wire_has_too_many_fields() -> None:
    large = {
        name for module in MODULES if not module.file.startswith("wire/") for name in list_large(module.tree)
    }
    assert large == set()


def test_a_large_dataclass_is_found() -> None:
    body = "\n".join(f"    field{number}: int" for number in range(MAX_FIELDS + 1))
    assert list_large(ast.parse(f"@dataclass(frozen=True)\nclass Large:\n{body}")) == ["Large"]
    assert list_large(ast.parse(f"class NoDataclass:\n{body}")) == []


def test_the_application_is_small() -> None:
    assert len(fields(Application)) <= MAX_FIELDS
