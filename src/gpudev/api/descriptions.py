"""The text under each field of the wire becomes its description in the OpenAPI document.

The wire itself is plain Python, so that the client need not have pydantic; what pydantic is to do with
those dataclasses is said here.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import TypeVar

from pydantic import ConfigDict

from gpudev import wire
from gpudev.api.free_text import teach_pydantic

T = TypeVar("T")


def describe_wire() -> None:
    teach_pydantic()
    for kind in list_wire_types():
        described(kind)


def described(kind: type[T]) -> type[T]:
    """Also a decorator, for a body whose fields need more than the wire can say."""
    kind.__pydantic_config__ = ConfigDict(use_attribute_docstrings=True)  # type: ignore[attr-defined]  # pydantic looks for it
    return kind


def list_wire_types() -> Iterator[type]:
    for entry in pkgutil.iter_modules(wire.__path__, f"{wire.__name__}."):
        module = importlib.import_module(entry.name)
        for value in vars(module).values():
            if isinstance(value, type) and is_dataclass(value) and value.__module__ == module.__name__:
                yield value
