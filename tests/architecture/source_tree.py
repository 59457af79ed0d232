"""The source as data: every module, and what it imports, where it stands in the file or in a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "src" / "gpudev"


@dataclass(frozen=True)
class Import:
    target: str
    line: int
    is_at_start: bool
    """Carried out when the module is imported: not inside a function, not for the type checker alone."""
    is_for_types: bool
    """Under `if TYPE_CHECKING`, so never carried out at all."""


@dataclass(frozen=True)
class Module:
    path: Path

    @property
    def name(self) -> str:
        parts = ("gpudev", *self.path.relative_to(ROOT).with_suffix("").parts)
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def file(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        return tuple(_find_imports(self, self.tree, in_function=False, for_types=False))

    def package_up(self, level: int) -> str:
        """The package that a relative import of so many dots starts from."""
        parts = self.name.split(".")
        drop = level - 1 if self.path.name == "__init__.py" else level
        return ".".join(parts[: len(parts) - drop])


MODULES = tuple(Module(path) for path in sorted(ROOT.rglob("*.py")))
BY_NAME = {module.name: module for module in MODULES}


def _find_imports(module: Module, node: ast.AST, *, in_function: bool, for_types: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        for target in _targets_of(module, child):
            at_start = not in_function and not for_types
            yield Import(target, getattr(child, "lineno", 0), at_start, for_types)
        function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from _find_imports(
            module,
            child,
            in_function=in_function or function,
            for_types=for_types or _is_type_checking(child),
        )


def _targets_of(module: Module, node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        start = module.package_up(node.level) if node.level else ""
        base = ".".join(part for part in (start, node.module) if part)
        # `from package import module` imports the module; the name of anything else is left to the base.
        whole = (f"{base}.{alias.name}" for alias in node.names)
        return [name if name in BY_NAME else base for name in whole]
    return []


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
