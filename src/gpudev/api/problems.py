"""The errors of a route, as the OpenAPI document lists them."""

from __future__ import annotations

from typing import Any

from gpudev.wire.cluster import ErrorBody, ValidationErrorBody

_UNPROCESSABLE = 422

_DESCRIPTIONS = {
    400: "A value is out of its range or not a known choice; nothing was done.",
    401: "There is no API key, or it is unknown, expired or revoked.",
    403: "The caller may not do this, or is disabled.",
    404: "There is no such thing, or it is somebody else's.",
    408: "The body did not arrive in time.",
    409: "It clashes with what exists.",
    410: "It is deleted.",
    413: "The body is too long.",
    422: "The request does not fit the schema; `detail` is a list.",
    429: "It was asked too often; `Retry-After` says when to ask again.",
    500: "An error of ours.",
    503: "A part that is needed does not answer; `Retry-After` says when to ask again.",
}

Responses = dict[int | str, dict[str, Any]]


def problems(*statuses: int) -> Responses:
    """For `responses=` of a route or a router."""
    return {
        status: {
            "model": ValidationErrorBody if status == _UNPROCESSABLE else ErrorBody,
            "description": _DESCRIPTIONS[status],
        }
        for status in statuses
    }


OF_EVERY_ROUTE = problems(400, 408, 413, 422, 500, 503)
OF_EVERY_CALLER = OF_EVERY_ROUTE | problems(401, 403, 429)
"""What a route answers that wants an API key."""
