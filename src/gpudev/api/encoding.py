"""Wire values as JSON: what is not known is left out, times end in Z."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import orjson
from fastapi import Response

from gpudev import __version__
from gpudev.wire.versions import OLDEST_CLIENT, OLDEST_CLIENT_HEADER, VERSION_HEADER

_VERSIONS = tuple(
    (name.lower().encode(), value.encode())
    for name, value in ((VERSION_HEADER, __version__), (OLDEST_CLIENT_HEADER, OLDEST_CLIENT))
)
"""On every answer, so that no client needs to ask for them."""
_OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_UTC_Z | orjson.OPT_NAIVE_UTC


def encode(value: object) -> bytes:
    return orjson.dumps(value, default=_without_none, option=_OPTIONS)


def json_response(value: object, status_code: int = 200, headers: dict[str, str] | None = None) -> Response:
    response = Response(encode(value), status_code, headers=headers, media_type="application/json")
    response.raw_headers.extend(_VERSIONS)
    return response


def secret_response(value: object) -> Response:
    """An answer with a secret in it, which nobody on the way may keep."""
    return json_response(value, headers={"Cache-Control": "no-store"})


def _without_none(value: Any) -> dict[str, object]:
    names = _NAMES.get(type(value)) or _learn_names(type(value))
    pairs = ((name, getattr(value, name)) for name in names)
    return {name: content for name, content in pairs if content is not None}


_NAMES: dict[type, tuple[str, ...]] = {}
"""The fields of each dataclass met so far; asking for them takes longer than reading them."""


def _learn_names(kind: type) -> tuple[str, ...]:
    if not is_dataclass(kind):
        raise TypeError(f"{kind.__name__} has no JSON form.")
    names = _NAMES[kind] = tuple(field.name for field in fields(kind))
    return names
