"""Hostile values in every documented parameter are rejected, and a wrong method is told which ones fit."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.integration.api.conftest import Person, offer_types
from tests.support.api_server import TIMEOUT_SECONDS, ApiServer, running_api

HOSTILE = (
    "%00",
    "%ff%fe",
    "%ed%a0%80",
    "9" * 5000,
    "-1",
    "9999-12-31T23:59:59-14:00",
    "0001-01-01T00:00:00+14:00",
    "nan",
    quote("\u202e' OR 1=1 --"),
)
BODIES = (
    '"\\ud800"',
    "NaN",
    "1e999",
    "9" * 5000,
    "[" * 20_000,
    '"\\u0000"',
    "-0",
    "{}",
    '"' + "x" * 5000 + '"',
)
"""As JSON says them, and as it must not."""
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


@pytest.fixture(scope="module")
def api_server(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    asyncio.run(offer_types(module_database))
    settings = {"GPU_DEV_ADMINS": "local:admin", "GPU_DEV_REQUESTS_PER_SECOND": "0"}
    with running_api(module_database, Path(tmp_path_factory.mktemp("state")), settings) as server:
        yield server


@pytest.fixture(scope="module")
def document(api_server: ApiServer) -> dict[str, Any]:
    found: dict[str, Any] = api_server.call("GET", "/openapi.json").json
    return found


@pytest.fixture(scope="module")
def admin(make_person: Callable[..., Person]) -> Person:
    return make_person("admin")


def list_operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield method.upper(), path, operation


def fill(path: str, values: dict[str, str]) -> str:
    return "/".join(values.get(part[1:-1], "x") if part.startswith("{") else part for part in path.split("/"))


def test_no_parameter_makes_the_server_fail(document: dict[str, Any], admin: Person) -> None:
    failures = []
    for method, path, operation in list_operations(document):
        for parameter in operation.get("parameters", ()):
            for value in HOSTILE:
                asked = fill(path, {parameter["name"]: value} if parameter["in"] == "path" else {})
                asked += f"?{parameter['name']}={value}" if parameter["in"] == "query" else ""
                answer = admin.call(method, asked)
                failures += [(method, asked[:80])] if answer.status >= 500 else []
    assert failures == []


def test_no_field_of_a_body_makes_the_server_fail(document: dict[str, Any], admin: Person) -> None:
    failures = []
    for method, path, operation in list_operations(document):
        if "requestBody" not in operation:
            continue
        for name in list_fields(document, operation["requestBody"]["content"]["application/json"]["schema"]):
            for value in BODIES:
                status = send(admin, method, fill(path, {}), f'{{"{name}": {value}}}')
                failures += [(method, path, name, value[:20])] if status >= 500 else []
    assert failures == []


@pytest.mark.parametrize(
    "field", ["name", "gpu_type", "image", "github_user", "client_version", "disk_name"], ids=str
)
def test_a_lone_surrogate_in_a_whole_submit_is_rejected(admin: Person, field: str) -> None:
    asked = {"gpu_type": "t4", "gpu_count": 1, "duration_hours": 1, field: "SURROGATE"}
    text = json.dumps(asked).replace("SURROGATE", "\\ud800")
    assert send(admin, "POST", "/v1/jobs/submit", text) == 400


def test_a_method_that_a_path_lacks_is_told_those_it_has(document: dict[str, Any], admin: Person) -> None:
    for path in document["paths"]:
        asked = fill(path, {})
        # A path that is written out comes first: /v1/jobs/submit is no reservation of that name.
        allowed = {method.upper() for method in document["paths"][path]}
        for method in set(METHODS) - allowed:
            answer = admin.call(method, asked)
            assert answer.status == 405, (method, path)
            found = {name.lower(): value for name, value in answer.headers.items()}
            assert set(found["allow"].split(", ")) == allowed, (method, path)
            assert method == "HEAD" or answer.json["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    "path", ["audit?until=0.5", "audit?since=1e9", "usage?to=0.5", "usage?from=1700000000"]
)
def test_a_number_is_no_time(admin: Person, path: str) -> None:
    assert admin.call("GET", f"/v1/admin/{path}").status == 422


@pytest.mark.parametrize("name", ["submit", "preview"])
def test_a_path_of_the_api_is_no_name(admin: Person, name: str) -> None:
    answer = admin.submit(name=name)
    assert (answer.status, answer.json["code"]) == (400, "bad_name")
    assert admin.call("GET", f"/v1/jobs/{name}").status == 405


def list_fields(document: dict[str, Any], schema: dict[str, Any]) -> set[str]:
    if "$ref" in schema:
        return list_fields(document, document["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    names = set(schema.get("properties", ()))
    for form in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        names |= list_fields(document, form)
    return names


def send(person: Person, method: str, path: str, body: str) -> int:
    """A body as it stands, also one that is no JSON."""
    connection = http.client.HTTPConnection(person.server.host, person.server.port, timeout=TIMEOUT_SECONDS)
    headers = {"Authorization": f"Bearer {person.key}", "Content-Type": "application/json"}
    try:
        connection.request(method, path, body, headers)
        return connection.getresponse().status
    finally:
        connection.close()
