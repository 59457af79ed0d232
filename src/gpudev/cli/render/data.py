"""Wire values as JSON and YAML, in the shapes of the HTTP API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gpudev.client import codec


def format_json(value: object) -> str:
    return json.dumps(codec.encode(value), indent=2)


def format_yaml(value: object) -> str:
    """Block style; scalars are written as JSON, which YAML includes."""
    return "\n".join(_yaml_lines(codec.encode(value)))


def _yaml_lines(data: Any) -> Iterator[str]:
    if isinstance(data, dict) and data:
        for key, item in data.items():
            yield from _entry(f"{key}:", item, indent="  ")
    elif isinstance(data, list) and data:
        for item in data:
            yield from _entry("-", item, indent="  ", starts_inline=True)
    else:
        yield json.dumps(data)


def _entry(lead: str, item: Any, *, indent: str, starts_inline: bool = False) -> Iterator[str]:
    """A key or a dash with what belongs to it: on the same line, or below and further in."""
    first, *rest = _yaml_lines(item)
    is_block = isinstance(item, (dict, list)) and bool(item)
    if is_block and not starts_inline:
        yield lead
        yield f"{indent}{first}"
    else:
        yield f"{lead} {first}"
    yield from (f"{indent}{line}" for line in rest)
