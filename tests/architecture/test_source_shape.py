"""The shape of the source: small modules with honest names, and errors that are not swallowed."""

from __future__ import annotations

import ast
from fnmatch import fnmatch

import pytest

from tests.architecture.source_tree import MODULES, ROOT, Module

MAX_LINES = 400
SAYS_NOTHING = {"utils", "util", "helpers", "helper", "common", "manager", "handler", "handlers", "misc"}
CATCHES_EVERYTHING = {"Exception", "BaseException"}
MAY_CATCH_EVERYTHING = (
    "app/controllers/chores.py",
    "app/controllers/once.py",
    "app/turns/*.py",
    "api/errors.py",
    "faults.py",
)
"""The turn of a controller, the turn of a message, the edge of HTTP and the boundary of background work."""

every_module = pytest.mark.parametrize("module", MODULES, ids=lambda module: module.file)


@every_module
def test_module_is_not_too_long(module: Module) -> None:
    assert len(module.text.splitlines()) <= MAX_LINES


@every_module
def test_module_has_a_name_that_says_something(module: Module) -> None:
    words = {word for part in module.name.split(".") for word in part.split("_")}
    assert not words & SAYS_NOTHING


@every_module
def test_module_says_what_it_is(module: Module) -> None:
    assert ast.get_docstring(module.tree) or not module.text.strip()


@every_module
def test_nothing_catches_every_error_but_the_boundaries(module: Module) -> None:
    if any(fnmatch(module.file, allowed) for allowed in MAY_CATCH_EVERYTHING):
        return
    assert list_broad_catches(module.tree) == []


MAY_START_TASKS = {"app/turns/loop.py"}
"""Inside the boundary of faults, and the turns, which have their own."""


@pytest.mark.parametrize(
    "module",
    [
        one
        for one in MODULES
        if one.file.startswith(("app/controllers/", "app/turns/")) or one.file == "bootstrap/controller.py"
    ],
    ids=lambda module: module.file,
)
def test_a_controller_starts_no_task_outside_the_boundary_of_faults(module: Module) -> None:
    started = {word for word in ("TaskGroup", "create_task", "ensure_future") if word in module.text}
    assert module.file in MAY_START_TASKS or not started


def list_broad_catches(tree: ast.AST) -> list[int]:
    """The lines of `except:`, `except Exception` and `suppress(Exception)`."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.ExceptHandler) and (node.type is None or names_everything(node.type)))
        or (isinstance(node, ast.Call) and is_suppress(node) and any(map(names_everything, node.args)))
    ]


def is_suppress(call: ast.Call) -> bool:
    return ast.unparse(call.func).split(".")[-1] == "suppress"


def names_everything(caught: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id in CATCHES_EVERYTHING for node in ast.walk(caught))


@pytest.mark.parametrize(
    "source, is_broad",
    [
        ("try: pass\nexcept: pass", True),
        ("try: pass\nexcept Exception: pass", True),
        ("try: pass\nexcept (OSError, BaseException): pass", True),
        ("with contextlib.suppress(Exception): pass", True),
        ("try: pass\nexcept (OSError, ValueError): pass", False),
        ("with suppress(FileNotFoundError): pass", False),
    ],
)
def test_broad_catches_are_found(source: str, *, is_broad: bool) -> None:
    assert bool(list_broad_catches(ast.parse(source))) is is_broad


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {module.path.parent for module in MODULES}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_package_says_that_it_is_typed() -> None:
    assert (ROOT / "py.typed").is_file()
