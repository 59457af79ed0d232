"""Answers to errors."""

from __future__ import annotations

import json

import pytest

from gpudev.client import errors


@pytest.mark.parametrize(
    "status, code, kind",
    [
        (400, "bad_gpu_count", errors.Usage),
        (401, "unauthenticated", errors.LoginFailed),
        (403, "not_allowed", errors.NotAllowed),
        (404, "not_found", errors.NotFound),
        (409, "name_taken", errors.Conflict),
        (409, "quota_exceeded", errors.QuotaExceeded),
        (410, "deleted", errors.Conflict),
        (500, "internal_error", errors.ServerFailed),
        (503, "store_unavailable", errors.ServerFailed),
        (503, "no_capacity", errors.NoCapacity),
    ],
)
def test_each_answer_is_one_kind_of_error(status: int, code: str, kind: type[errors.ClientError]) -> None:
    body = {"detail": "It is so.", "code": code, "hint": "Do this."}
    error = errors.error_of(status, json.dumps(body).encode())
    assert type(error) is kind
    assert (error.message, error.code, error.hint) == ("It is so.", code, "Do this.")


def test_a_list_of_complaints_becomes_a_sentence() -> None:
    detail = [
        {"loc": ["body", "gpu_count"], "msg": "Input should be a valid integer", "type": "int_parsing"},
        {"loc": ["body", "name"], "msg": "Input should be a valid string", "type": "string_type"},
    ]
    error = errors.error_of(422, json.dumps({"detail": detail}).encode())
    assert isinstance(error, errors.Usage)
    assert error.message == "gpu_count: Input should be a valid integer; name: Input should be a valid string"


@pytest.mark.parametrize("body", [b"<html>Bad gateway</html>", b"", b"[]", b"null", b'{"detail": null}'])
def test_an_answer_of_something_on_the_way_is_told_by_its_status(body: bytes) -> None:
    error = errors.error_of(502, body)
    assert isinstance(error, errors.ServerFailed)
    assert error.message == "The server answered with HTTP status 502."


def test_too_many_requests_say_when_to_ask_again() -> None:
    body = (
        b'{"detail": "Too many.", "code": "too_many_failed_logins", "hint": "Wait for Retry-After seconds."}'
    )
    assert errors.error_of(429, body, 287.0).hint == "Try again in 287 seconds."
    assert errors.error_of(429, body).hint == "Wait for Retry-After seconds."
