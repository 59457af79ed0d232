"""No request holds text without a limit: every string that is sent is `wire.text.Text`, or stricter."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from gpudev import api
from gpudev.wire.message import message
from gpudev.wire.text import Name, Text


def list_routes() -> Iterator[APIRoute]:
    for entry in pkgutil.iter_modules(api.__path__, f"{api.__name__}."):
        router = getattr(importlib.import_module(entry.name), "router", None)
        for route in router.routes if router else ():
            if isinstance(route, APIRoute):
                yield route


ROUTES = sorted({f"{min(route.methods)} {route.path}": route for route in list_routes()}.items())


def list_parameters(dependant: Dependant) -> Iterator[tuple[str, Any]]:
    """Of the route itself and of all that it depends on."""
    for kind in ("path", "query", "header", "cookie", "body"):
        for parameter in getattr(dependant, f"{kind}_params"):
            field = parameter.field_info
            has_limit = any(type(rule).__name__ == "MaxLen" for rule in field.metadata)
            if not (kind == "header" and has_limit):  # HTTP itself lets no control characters into a header
                yield parameter.name, Annotated[field.annotation, *field.metadata, None]
    for needed in dependant.dependencies:
        yield from list_parameters(needed)


def find_unlimited(hint: Any, place: str) -> Iterator[str]:
    """Where in a type there is a string without a rule."""
    if get_origin(hint) is Annotated:
        inner, *rules = get_args(hint)
        if any(isinstance(rule, Text) or _is_strict(rule) for rule in rules) and _is_only_text(inner):
            return
        yield from find_unlimited(inner, place)
    elif hint is str:
        yield place
    elif dataclasses.is_dataclass(hint):
        for name, field in get_type_hints(hint, include_extras=True).items():
            yield from find_unlimited(field, f"{place}.{name}")
    else:
        for inner in get_args(hint):
            yield from find_unlimited(inner, place)


def _is_only_text(hint: Any) -> bool:
    return hint is str or {str, type(None)} == set(get_args(hint))


def _is_strict(rule: Any) -> bool:
    """A field of pydantic with a length and a pattern of its own."""
    names = {type(each).__name__ for each in getattr(rule, "metadata", ())}
    return "MaxLen" in names and "_PydanticGeneralMetadata" in names


@pytest.mark.parametrize("name, route", ROUTES, ids=[name for name, _ in ROUTES])
def test_every_text_of_a_request_has_a_limit(name: str, route: APIRoute) -> None:
    unlimited = [
        place for each, hint in list_parameters(route.dependant) for place in find_unlimited(hint, each)
    ]
    assert unlimited == [], name


def test_there_are_routes_to_look_at() -> None:
    assert len(ROUTES) > 40
    assert any(route.dependant.body_params for _, route in ROUTES)


def test_unlimited_text_is_found_wherever_it_is() -> None:
    @message
    class Wrong:
        limited: Name
        perhaps: Name | None
        listed: list[str]
        mapped: dict[Name, str]
        key: dict[str, Name]
        bare: str

    Wrong.__annotations__.update(
        limited=Name,
        perhaps=Name | None,
        listed=list[str],
        mapped=dict[Name, str],
        key=dict[str, Name],
        bare=str,
    )
    assert list(find_unlimited(Wrong, "x")) == ["x.listed", "x.mapped", "x.key", "x.bare"]
