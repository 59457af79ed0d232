"""Named SQL queries from the files in `sql/`.

A file is a noun; each query starts with a line `-- name: the_name` and ends before the comment or name
line of the next. A line `-- include: noun.name` stands for that query. Nothing else in the system holds SQL.

A parameter is `:name`, and gets its value by that name: `fetch(*queries.bind("get", name=value))`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from gpudev.domain.errors import Defect

_NAME_LINE = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_INCLUDE_LINE = re.compile(r"^ *-- include: (\w+)\.(\w+)$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<![:\w']):([a-z]\w*)")
"""Not a cast, and not in a time or a text."""
_TRAILING_COMMENT = re.compile(r"(\n--[^\n]*)+\s*$")

NOUNS = (
    "admissions",
    "api_keys",
    "audit",
    "dead_letters",
    "disk_ledger",
    "disks",
    "forecasts",
    "github_bindings",
    "github_keys",
    "gpu_types",
    "health",
    "identities",
    "job_outputs",
    "login_failures",
    "nodes",
    "notifications",
    "operations",
    "queue",
    "reports",
    "reservations",
    "retention",
    "turns",
    "usages",
    "users",
)


@dataclass(frozen=True, slots=True)
class Query:
    """The text as PostgreSQL takes it, with the names of its parameters by their numbers."""

    text: str
    names: tuple[str, ...]
    known: frozenset[str]


class Queries:
    """The queries of one file, by their names."""

    def __init__(self, queries: Mapping[str, Query]) -> None:
        self._queries = queries

    def __getitem__(self, name: str) -> str:
        return self._queries[name].text

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    def bind(self, name: str, /, **values: object) -> tuple[Any, ...]:
        """The text with its values in their order; a value too many or too few is an error of ours."""
        query = self._queries[name]
        if values.keys() != query.known:
            raise Defect("query_values_wrong", names=sorted(values.keys() ^ query.known))
        return (query.text, *map(values.__getitem__, query.names))


@cache
def load_queries(noun: str) -> Queries:
    queries = {
        name: _number_parameters(_include(text)) for name, text in split_queries(read_sql(noun)).items()
    }
    return Queries(MappingProxyType(queries))


def read_sql(noun: str) -> str:
    return files(__package__).joinpath("sql", f"{noun}.sql").read_text(encoding="utf-8")


def split_queries(text: str) -> dict[str, str]:
    """The queries of one file by their names, as they are written."""
    _, *parts = _NAME_LINE.split(text)
    names, bodies = parts[::2], parts[1::2]
    return {name: _TRAILING_COMMENT.sub("", body).strip() for name, body in zip(names, bodies, strict=True)}


def _include(text: str) -> str:
    return _INCLUDE_LINE.sub(lambda found: split_queries(read_sql(found[1]))[found[2]].rstrip(";"), text)


def _number_parameters(text: str) -> Query:
    names: dict[str, str] = {}
    numbered = _PARAMETER.sub(lambda found: names.setdefault(found[1], f"${len(names) + 1}"), text)
    return Query(numbered, tuple(names), frozenset(names))
