"""JSON to the wire's dataclasses and back, by their type hints.

Unknown fields are ignored, so that this client works with a newer server; None is left out of what is
sent. Times are ISO 8601 in UTC, ending in Z.
"""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from gpudev.client.errors import ServerFailed

T = TypeVar("T")


def loads(kind: type[T], body: bytes | str) -> T:
    """The value of type `kind` that an answer's body holds."""
    try:
        return decode(kind, json.loads(body))
    except (ValueError, TypeError) as error:
        raise ServerFailed(
            f"The server's answer cannot be read: {error}.",
            hint="Is GPU_DEV_API_URL the address of a gpu-dev server? Otherwise update gpu-dev.",
            code="bad_answer",
        ) from error


def dumps(value: object) -> str:
    return json.dumps(encode(value))


def decode(kind: type[T], data: Any) -> T:
    """Raises TypeError or ValueError, naming the field, if the data does not fit."""
    return _decode(kind, data, kind.__name__)  # type: ignore[no-any-return]  # the hint decides the type


def encode(value: object) -> Any:
    if dataclasses.is_dataclass(value):
        pairs = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {name: encode(item) for name, item in pairs if item is not None}
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return value


def _decode(hint: Any, data: Any, place: str) -> Any:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return None if data is None else _decode(_without_none(hint), data, place)
    if origin in (list, dict):
        return _decode_container(hint, _expect(origin, data, place), place)
    if dataclasses.is_dataclass(hint):
        return _decode_dataclass(hint, _expect(dict, data, place), place)
    if hint is object:
        return data
    if hint is datetime:
        return datetime.fromisoformat(_expect(str, data, place))
    return float(_expect((int, float), data, place)) if hint is float else _expect(hint, data, place)


def _decode_container(hint: Any, data: Any, place: str) -> Any:
    item_hint = get_args(hint)[-1]
    if isinstance(data, dict):
        return {key: _decode(item_hint, item, f"{place}.{key}") for key, item in data.items()}
    return [_decode(item_hint, item, place) for item in data]


def _decode_dataclass(kind: Any, data: dict[str, Any], place: str) -> Any:
    fields = {
        name: _decode(hint, data[name], f"{place}.{name}")
        for name, hint in _hints(kind).items()
        if name in data
    }
    return kind(**fields)


def _expect(kind: Any, data: Any, place: str) -> Any:
    # JSON's true is Python's int; a truth where a number belongs is still a mistake.
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise TypeError(f"{place} is a {type(data).__name__}")
    return data


def _without_none(hint: Any) -> Any:
    (only,) = (arg for arg in get_args(hint) if arg is not NoneType)
    return only


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
