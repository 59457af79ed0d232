"""How much of the code a change has to touch, in counts: `python -m tests.architecture.shape [COMMIT ...]`.

Without a commit it counts the working tree; with several it shows them side by side.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.architecture.reservation_path import BEFORE, NOW, count_steps, list_missing

ROOT = Path(__file__).resolve().parents[2]
_STATEMENT = re.compile(r"(?:CREATE TABLE (\w+) \((.*?)\n\)|ALTER TABLE (\w+)\s(.*?));", re.DOTALL)
_PARAMETER = re.compile(r"(?<![:\w']):([a-z]\w*)")
_NOT_A_COLUMN = ("CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "EXCLUDE", "LIKE", "--")


def count(source: Path) -> Mapping[str, str]:
    """By what is counted; a name in brackets says where the most are."""
    files = sorted(source.rglob("*.py"))
    trees = {
        file.relative_to(source).as_posix(): ast.parse(file.read_text(encoding="utf-8")) for file in files
    }
    sql = source / "adapters" / "postgres" / "sql"
    path = next((path for path in (NOW, BEFORE) if not list_missing(path, trees)), None)
    return {
        "files": str(len(files)),
        "lines": str(sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)),
        "fields of the largest type outside wire": _most(_list_fields(trees)),
        "columns of the widest table": _most(_count_columns(sql)),
        "parameters of the widest statement": _most(_count_parameters(sql)),
        "modules with one importer": str(_count_single_importers(trees)),
        "modules with one importer, under 50 lines": str(_count_single_importers(trees, source)),
        "shapes of a request": str(len(path.shapes)) if path else "unknown",
        "steps from the command to the row": str(count_steps(path.to_row)) if path else "unknown",
        "steps from the row to SSH": str(count_steps(path.to_ssh)) if path else "unknown",
        "queries": str(
            sum(file.read_text(encoding="utf-8").count("-- name: ") for file in sql.glob("*.sql"))
        ),
    }


def _most(counted: Mapping[str, int]) -> str:
    name, number = max(counted.items(), key=lambda one: one[1])
    return f"{number} ({name})"


def _list_fields(trees: Mapping[str, ast.Module]) -> dict[str, int]:
    found: dict[str, int] = {}
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and _is_dataclass(node) and not file.startswith("wire/"):
                found[node.name] = sum(isinstance(item, ast.AnnAssign) for item in node.body)
    return found


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)


def _count_columns(sql: Path) -> Counter[str]:
    """By table, as the schema has it; before it was one file, as all migrations together leave it."""
    schema = sql / "schema.sql"
    columns: Counter[str] = Counter()
    for file in [schema] if schema.exists() else sorted(sql.glob("migrations/*.sql")):
        for created, body, altered, changes in _STATEMENT.findall(file.read_text(encoding="utf-8")):
            if created:
                columns[created] += sum(_is_column(line) for line in body.splitlines())
            columns[altered] += len(re.findall(r"ADD COLUMN|ADD (?!CONSTRAINT|CHECK)\w+ ", changes))
            columns[altered] -= len(re.findall(r"DROP COLUMN", changes))
    columns.pop("", None)
    return columns


def _is_column(line: str) -> bool:
    """One that begins a definition: indented once, with a name in small letters."""
    return bool(re.match(r" {4}[a-z]\w* +\S", line)) and not line.strip().startswith(_NOT_A_COLUMN)


def _count_parameters(sql: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for file in sql.glob("*.sql"):
        for part in file.read_text(encoding="utf-8").split("-- name: ")[1:]:
            numbers = [int(number) for number in re.findall(r"\$(\d+)", part)]
            names = set(_PARAMETER.findall(part))
            found[f"{file.stem}.{part.split()[0]}"] = max([len(names), *numbers])
    return found


def _count_single_importers(trees: Mapping[str, ast.Module], shorter_than: Path | None = None) -> int:
    names = {_module_name(file): file for file in trees}
    importers: Counter[str] = Counter()
    for tree in trees.values():
        importers.update({target for target in _list_imports(tree) if target in names})
    single = [names[name] for name, number in importers.items() if number == 1]
    if shorter_than is None:
        return len(single)
    return sum(len((shorter_than / file).read_text(encoding="utf-8").splitlines()) < 50 for file in single)


def _module_name(file: str) -> str:
    return "gpudev." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _list_imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _extract(commit: str, folder: Path) -> Path:
    packed = subprocess.run(
        ["git", "archive", commit, "src/gpudev"], cwd=ROOT, check=True, capture_output=True
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src" / "gpudev"


def main(commits: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sources = {name: _extract(name, Path(folder) / name) for name in commits} or {
            "now": ROOT / "src" / "gpudev"
        }
        counted = {name: count(source) for name, source in sources.items()}
    width = max(map(len, next(iter(counted.values()))))
    print(" " * width, *(f"{name:<42}" for name in counted))  # noqa: T201 - a program
    for what in next(iter(counted.values())):
        print(f"{what:<{width}}", *(f"{one[what]:<42}" for one in counted.values()))  # noqa: T201 - a program


if __name__ == "__main__":
    main(sys.argv[1:])
