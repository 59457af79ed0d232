"""The OpenAPI document: everything is described, every error is listed, and the examples work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from gpudev.texts.vocabulary import QUEUE_MOVE, DiskState, EventKind, OperationStatus, Status
from tests.integration.api.conftest import Person
from tests.support.api_server import ApiServer

Document = dict[str, Any]


@pytest.fixture(scope="module")
def document(api_server: ApiServer) -> Document:
    found: Document = api_server.call("GET", "/openapi.json").json
    return found


def operations(document: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def test_every_field_is_described(document: Document) -> None:
    bare = [
        f"{name}.{field}"
        for name, schema in document["components"]["schemas"].items()
        for field, shape in schema.get("properties", {}).items()
        if not shape.get("description")
    ]
    assert bare == []


@pytest.mark.parametrize(
    "schema, field, words",
    [
        ("JobDetail", "status", Status),
        ("JobEvent", "kind", [*EventKind, QUEUE_MOVE]),
        ("OperationDetail", "status", OperationStatus),
        ("DiskInfo", "state", DiskState),
    ],
)
def test_a_field_with_a_closed_list_of_words_names_them_all(
    document: Document, schema: str, field: str, words: Iterable[str]
) -> None:
    assert document["components"]["schemas"][schema]["properties"][field]["enum"] == [*map(str, words)]


def test_what_a_stream_consists_of_is_described_as_a_stream(document: Document) -> None:
    answer = document["paths"]["/v1/jobs/{job_id}/events"]["get"]["responses"]["200"]
    assert set(answer["content"]) == {"text/event-stream"}
    data = answer["content"]["text/event-stream"]["schema"]["properties"]["data"]
    assert data["contentSchema"]["$ref"].endswith("/JobEvent")


def test_every_parameter_is_described(document: Document) -> None:
    bare = [
        f"{route} {parameter['name']}"
        for route, operation in operations(document)
        for parameter in operation.get("parameters", [])
        if not parameter.get("description")
    ]
    assert bare == []


def test_every_route_says_what_it_does(document: Document) -> None:
    assert [route for route, operation in operations(document) if not operation.get("description")] == []


def test_every_route_lists_its_errors(document: Document) -> None:
    for route, operation in operations(document):
        listed = set(operation["responses"])
        assert {"422", "500", "503"} <= listed, route
        if operation.get("security"):
            assert {"401", "403"} <= listed, route
        if "{" in route:
            assert "404" in listed, route


def test_errors_have_the_shape_that_is_sent(document: Document) -> None:
    used = {
        (status, answer["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2])
        for route, operation in operations(document)
        for status, answer in operation["responses"].items()
        if status >= "400" and route != "GET /ready"
    }
    assert {kind for status, kind in used if status != "422"} == {"ErrorBody"}
    assert {kind for status, kind in used if status == "422"} == {"ValidationErrorBody"}


def test_the_examples_work_when_pasted(document: Document, ada: Person) -> None:
    pasted = 0
    for route, operation in operations(document):
        method, _, path = route.partition(" ")
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        for name, example in content.get("examples", {}).items():
            answer = ada.call(method, path, example["value"])
            assert answer.status == 200, f"{route}, {name}: {answer.text}"
            pasted += 1
    assert pasted


def test_a_mapping_whose_keys_have_a_rule_has_no_others(document: Document) -> None:
    labels = document["components"]["schemas"]["SubmitRequest"]["properties"]["env_vars"]
    assert "patternProperties" in labels
    assert labels["additionalProperties"] is False


def test_what_the_rules_ask_is_in_the_document(document: Document) -> None:
    schemas = document["components"]["schemas"]
    assert schemas["CreateDiskRequest"]["properties"]["disk_name"]["pattern"] == "^[A-Za-z0-9_-]{1,50}$"
    hours = schemas["SubmitRequest"]["properties"]["duration_hours"]
    assert (hours["minimum"], hours["maximum"]) == (1 / 12, 24)


@pytest.mark.parametrize(
    "method, path, body",
    [
        (
            "POST",
            "/v1/jobs/preview",
            {"gpu_type": "t4", "gpu_count": 1, "duration_hours": 1, "distributed": 0},
        ),
        ("PUT", "/v1/me/notifications", {"url": "", "topics": ["nonsense"]}),
        ("PUT", "/v1/me/notifications", {"kind": "nonsense"}),
        ("POST", "/v1/jobs/preview", {"gpu_type": "t4", "gpu_count": 1, "duration_hours": 1 / 12 - 1e-12}),
    ],
    ids=[
        "a number for a boolean",
        "a topic without an address",
        "a kind without an address",
        "a moment too short",
    ],
)
def test_what_the_document_excludes_is_rejected(ada: Person, method: str, path: str, body: Document) -> None:
    assert ada.call(method, path, body).status in {400, 422}
