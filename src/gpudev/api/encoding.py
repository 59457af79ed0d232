"""Wire values as JSON: what is not known is left out, times end in Z."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import orjson
from fastapi import Response

_OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_UTC_Z | orjson.OPT_NAIVE_UTC


def encode(value: object) -> bytes:
    return orjson.dumps(value, default=_without_none, option=_OPTIONS)


def json_response(value: object, status_code: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(encode(value), status_code, headers=headers, media_type="application/json")


def _without_none(value: Any) -> dict[str, object]:
    if not is_dataclass(value):
        raise TypeError(f"{type(value).__name__} has no JSON form.")
    pairs = ((field.name, getattr(value, field.name)) for field in fields(value))
    return {name: content for name, content in pairs if content is not None}
