"""The wire as FastAPI and pydantic see it: the checks of `wire.text`, descriptions and OpenAPI schemas.

The text under each field of the wire becomes its description in the OpenAPI document. The wire itself is
plain Python, so that the client need not have pydantic; what pydantic is to do with those dataclasses is said
here.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import AfterValidator, GetCoreSchemaHandler, GetJsonSchemaHandler

from gpudev import wire
from gpudev.wire.text import HIDDEN, LINE_BREAKS, Exact, Text, Within, Word

_LAST_CONTROL = 0x1F
_LAST_OF_PLANE_0 = 0xFFFF
_SURROGATES = (0xD800, 0xDFFF)
T = TypeVar("T")
EVENT_STREAM = "text/event-stream"


class BadText(ValueError):
    """A text that is too long or has hidden characters. The text itself is not repeated anywhere."""

    def __init__(self, rule: Text) -> None:
        super().__init__(f"must be {rule.rule}")
        self.rule = rule


def teach_pydantic() -> None:
    Text.__get_pydantic_core_schema__ = _check  # type: ignore[attr-defined]  # pydantic looks for it
    Text.__get_pydantic_json_schema__ = _describe  # type: ignore[attr-defined]  # the same
    Exact.__get_pydantic_core_schema__ = _check_exactly  # type: ignore[attr-defined]  # the same
    Within.__get_pydantic_json_schema__ = _describe_range  # type: ignore[attr-defined]  # the same
    Word.__get_pydantic_json_schema__ = _describe_words  # type: ignore[attr-defined]  # the same


def _check(rule: Text, source: Any, handler: GetCoreSchemaHandler) -> Any:
    def check(text: str) -> str:
        if not rule.accepts(text):
            raise BadText(rule)
        return text

    return AfterValidator(check).__get_pydantic_core_schema__(source, handler)


def _check_exactly(_rule: Exact, source: Any, handler: GetCoreSchemaHandler) -> Any:
    return {**handler(source), "strict": True}


def _describe(rule: Text, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
    pattern = rule.pattern or _pattern(has_lines=rule.has_lines)
    return {**handler(schema), "maxLength": rule.longest, "pattern": pattern}


def _describe_range(rule: Within, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
    lower = "exclusiveMinimum" if rule.without_first else "minimum"
    return {**handler(schema), lower: rule.first, "maximum": rule.last}


def _describe_words(rule: Word, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
    return {**handler(schema), "enum": [str(word) for word in rule.words]}


def _pattern(*, has_lines: bool) -> str:
    """As all readers of JSON Schema understand it: some take what is beyond plane 0 for two characters."""
    allowed = {ord(character) for character in LINE_BREAKS} if has_lines else set()
    controls = [(code, code) for code in range(_LAST_CONTROL + 1) if code not in allowed]
    in_plane_0 = [
        pair for pair in HIDDEN if _LAST_CONTROL < pair[1] <= _LAST_OF_PLANE_0 and pair != _SURROGATES
    ]
    refused = "".join(f"\\u{first:04x}-\\u{last:04x}" for first, last in (*controls, *in_plane_0))
    return f"^[^{refused}]*$"


def describe_wire() -> None:
    teach_pydantic()
    for kind in list_wire_types():
        described(kind)


def described(kind: type[T]) -> type[T]:
    """Also a decorator, for a body whose fields need more than the wire can say.

    Pydantic takes the description from the metadata of a field. Its own `use_attribute_docstrings` parses the
    module again for each use of a type, which was half of the time that the API took to start.
    """
    texts = _read_texts(kind.__module__).get(kind.__qualname__, {})
    for field in fields(kind):  # type: ignore[arg-type]  # a dataclass, which `type` does not say
        if field.name in texts:
            field.metadata = MappingProxyType({**field.metadata, "description": texts[field.name]})
    return kind


def list_wire_types() -> Iterator[type]:
    for entry in pkgutil.iter_modules(wire.__path__, f"{wire.__name__}."):
        module = importlib.import_module(entry.name)
        for value in vars(module).values():
            if isinstance(value, type) and is_dataclass(value) and value.__module__ == module.__name__:
                yield value


def describe_streams(document: dict[str, Any]) -> dict[str, Any]:
    """Say of a stream that each event has the model as its data; FastAPI takes it for the whole body."""
    for operations in document["paths"].values():
        for operation in operations.values():
            contents = (answer.get("content", {}) for answer in operation["responses"].values())
            for content in (found for found in contents if EVENT_STREAM in found):
                content[EVENT_STREAM] = {"schema": _event_with(content.pop("application/json")["schema"])}
    return document


def _event_with(data: dict[str, Any]) -> dict[str, Any]:
    json_text = {"type": "string", "contentMediaType": "application/json", "contentSchema": data}
    fields = {"id": {"type": "string"}, "event": {"type": "string"}, "data": json_text}
    return {"type": "object", "properties": fields, "required": ["event", "data"]}


def close_mappings(schema: Any) -> Any:
    """Say of each mapping whose keys have a rule that it has no other keys; pydantic leaves that out."""
    if isinstance(schema, list):
        return [close_mappings(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: close_mappings(each) for name, each in schema.items()}
    return {**closed, "additionalProperties": False} if "patternProperties" in closed else closed


@cache
def _read_texts(module: str) -> Mapping[str, Mapping[str, str]]:
    """The text under each field of each class of a module, by their names."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: dict(_list_texts(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _list_texts(kind: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement, after in itertools.pairwise(kind.body):
        match statement, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)
            case _:
                pass
