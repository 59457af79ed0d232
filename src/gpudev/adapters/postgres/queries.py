"""Named SQL queries from the files in `sql/`.

A file is a noun; each query starts with a line `-- name: the_name` and ends before the comment or name
line of the next. A line `-- include: noun.name` stands for that query. Nothing else in the system holds SQL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

_NAME_LINE = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_INCLUDE_LINE = re.compile(r"^ *-- include: (\w+)\.(\w+)$", re.MULTILINE)
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
    "leftovers",
    "login_failures",
    "nodes",
    "notifications",
    "operations",
    "queue",
    "reports",
    "reservations",
    "turns",
    "usages",
    "users",
)


@cache
def load_queries(noun: str) -> Mapping[str, str]:
    text = files(__package__).joinpath("sql", f"{noun}.sql").read_text(encoding="utf-8")
    return parse_queries(_INCLUDE_LINE.sub(lambda found: load_queries(found[1])[found[2]].rstrip(";"), text))


def parse_queries(text: str) -> Mapping[str, str]:
    """The queries of one file by their names."""
    _, *parts = _NAME_LINE.split(text)
    names, bodies = parts[::2], parts[1::2]
    return MappingProxyType(
        {name: _TRAILING_COMMENT.sub("", body).strip() for name, body in zip(names, bodies, strict=True)}
    )
