"""No command writes to a terminal what a terminal would act on, whatever the server says.

The server answers every route with the shape that it documents, and puts terminal escapes, marks that reverse
text and other hidden characters into every string of it.
"""

from __future__ import annotations

import dataclasses
import importlib
import io
import json
import pkgutil
import types
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from fastapi.routing import APIRoute

from gpudev import api as api_package
from gpudev.cli.terminal.canvas import Canvas
from gpudev.cli.terminal.lines import Line
from gpudev.wire.jobs import JobEvent
from gpudev.wire.text import has_hidden
from tests.support.cli_tree import Leaf, list_leaves
from tests.support.fake_api import FakeApi, Reply, Seen
from tests.unit.cli.conftest import GpuDev

EVIL = "x\x1b[2J\x1b]0;title\a\x9b31m\u202eliar\u2066\x7f"
SHOWN = "x\\x1b[2J"
"""How it looks when it is escaped."""
LEAVES = list_leaves()
KNOWN = {"status": "failed", "reservation_id": "7f3a91c2-0000-4000-8000-000000000000"}
"""What decides how a command goes on. A reservation that is over is not waited for or connected to."""
OF_THEIR_OWN = {"open", "login", "doctor", "disk list", "notify test"}
"""Commands that may have nothing to say of what the server says; `open` looks for an editor first."""


@pytest.fixture(autouse=True)
def _folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`submit` looks at what is there."""
    (home / "project").mkdir()
    monkeypatch.chdir(home / "project")


def list_routes() -> list[APIRoute]:
    modules = (
        importlib.import_module(f"gpudev.api.{entry.name}")
        for entry in pkgutil.iter_modules(api_package.__path__)
    )
    routers = (module.router for module in modules if hasattr(module, "router"))
    return [route for router in routers for route in router.routes if isinstance(route, APIRoute)]


ROUTES = list_routes()


def fill(hint: Any, name: str = "") -> Any:
    """A value of this type in JSON, with something hidden in every string."""
    if get_origin(hint) in (Union, types.UnionType):
        return fill(get_args(hint)[0], name)
    if get_origin(hint) is list:
        return [fill(get_args(hint)[0], name) for _ in range(2)]
    if get_origin(hint) is dict:
        return {EVIL: fill(get_args(hint)[1], name)}
    if dataclasses.is_dataclass(hint):
        return {field: fill(inner, field) for field, inner in get_type_hints(hint).items()}
    if hint is str:
        return KNOWN.get(name, EVIL)
    return {datetime: datetime.now(UTC).isoformat(), bool: True}.get(hint, 1)


def answer(seen: Seen) -> Reply:
    path = seen.path.partition("?")[0]
    route = next(
        route
        for route in ROUTES
        if seen.method in route.methods and route.path_regex.fullmatch(path) is not None
    )
    if path.endswith("/events"):
        return Reply(stream=_events())
    if path.endswith("/logs"):
        return Reply(stream=f"{EVIL}\n{EVIL}\n")
    return Reply(body=fill(route.response_model))


def _events() -> str:
    kinds = ("submitted", EVIL.replace("\x1b", ""), "failed", "cleaned")
    told = [{**fill(JobEvent), "number": number, "kind": kind} for number, kind in enumerate(kinds, 1)]
    return "".join(f"id: {event['number']}\ndata: {json.dumps(event)}\n\n" for event in told)


def refuse(_: Seen) -> Reply:
    return Reply(400, {"detail": EVIL, "code": EVIL, "hint": f"{EVIL} gpu-dev {EVIL}"})


def words_of(leaf: Leaf) -> list[str]:
    return [*leaf.words("7f3a91c2"), *(["-y"] if leaf.path == "disk delete" else [])]


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.path)
def test_what_the_server_says_is_escaped(api: FakeApi, gpu_dev: GpuDev, leaf: Leaf) -> None:
    api.replies.pop(("GET", "/v1/gpu/availability"))
    api.replies.pop(("GET", "/v1/disks"))
    api.fallback = answer
    seen = gpu_dev(*words_of(leaf))
    assert not has_hidden(seen.out + seen.err, "\n\t")
    assert leaf.path in OF_THEIR_OWN or SHOWN in seen.out + seen.err


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.path)
def test_what_the_server_refuses_is_escaped(api: FakeApi, gpu_dev: GpuDev, leaf: Leaf) -> None:
    api.replies.pop(("GET", "/v1/gpu/availability"))
    api.fallback = refuse
    seen = gpu_dev(*words_of(leaf))
    assert not has_hidden(seen.out + seen.err, "\n\t")
    assert leaf.path in OF_THEIR_OWN or SHOWN in seen.out + seen.err


@pytest.mark.parametrize("leaf", [leaf for leaf in LEAVES if leaf.has_json], ids=lambda leaf: leaf.path)
def test_json_stays_json_and_is_safe_to_look_at(api: FakeApi, gpu_dev: GpuDev, leaf: Leaf) -> None:
    api.fallback = answer
    seen = gpu_dev(*words_of(leaf), "--json")
    assert not has_hidden(seen.out + seen.err, "\n\t")
    json.loads(seen.out or seen.err.splitlines()[-1])


def test_what_is_typed_is_escaped_too(gpu_dev: GpuDev) -> None:
    for words in (["nosuch\x1b[2J"], ["list", "--nosuch\x1b[2J"], ["extend", "x", "\x1b[2J"]):
        seen = gpu_dev(*words)
        assert seen.code == 2
        assert not has_hidden(seen.out + seen.err, "\n\t")


def test_a_drawing_holds_no_escapes_but_its_own() -> None:
    screen, empty = io.StringIO(), io.StringIO()
    Canvas(screen, lambda: 200).draw([Line(EVIL)], above=[EVIL])
    Canvas(empty, lambda: 200).draw([Line("")], above=[""])
    assert screen.getvalue().count("\x1b") == empty.getvalue().count("\x1b")
    assert not has_hidden(screen.getvalue().replace("\x1b", ""), "\n\r")
    assert screen.getvalue().count(SHOWN) == 2


def test_a_line_break_in_a_cell_is_not_another_row(api: FakeApi, gpu_dev: GpuDev) -> None:
    forged = {**fill(list_response("/v1/disks")["disks"]), "disk_name": "a\nb  available"}
    api.on("GET", "/v1/disks", Reply(body={"disks": [forged], "total": 1}))
    seen = gpu_dev("disk", "list")
    assert "a\\x0ab  available" in seen.out


def list_response(path: str) -> dict[str, Any]:
    """The types of the elements of a listing, by field."""
    route = next(route for route in ROUTES if route.path == path and "GET" in route.methods)
    hints = get_type_hints(route.response_model)
    return {name: get_args(hint)[0] for name, hint in hints.items() if get_origin(hint) is list}
