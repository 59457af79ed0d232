"""What the CLI prints goes through the one step that escapes it: nothing else writes to a terminal."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.source_tree import MODULES, Module

WRITERS = {"click.echo", "click.secho", "click.confirm", "click.prompt", "click.echo_via_pager", "print"}
STREAMS = {"sys.stdout.write", "sys.stderr.write", "sys.stdout.buffer.write", "sys.stderr.buffer.write"}
MAY_WRITE = {
    "cli/output.py",  # the step itself
    "cli/terminal/prompts.py",  # escapes its questions
    "cli/live_listing.py",  # escapes the listing, and draws it
    "cli/job_run.py",  # passes on what the user's own job writes, byte for byte
}
OF_CLI = [module for module in MODULES if module.file.startswith("cli/")]


def list_writes(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in WRITERS | STREAMS:
            yield node.lineno


@pytest.mark.parametrize("module", OF_CLI, ids=lambda module: module.file)
def test_module_writes_through_output(module: Module) -> None:
    assert module.file in MAY_WRITE or list(list_writes(module.tree)) == []


@pytest.mark.parametrize("source", ["print(1)", "click.echo(x)", "sys.stdout.write(x)", "click.confirm(x)"])
def test_writes_are_found(source: str) -> None:
    assert list(list_writes(ast.parse(source))) == [1]
