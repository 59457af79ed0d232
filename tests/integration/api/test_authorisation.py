"""Who is answered what: every route of the service for every kind of caller, in one table.

The routes come from the service itself, so one that has no row here fails. For a new kind of caller, add a
field to `Row` and its key to `keys`.
"""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from gpudev.domain.disk import Disk, DiskId, DiskOperation, DiskSpec
from gpudev.domain.names import OperationId
from gpudev.texts.vocabulary import DiskOperationKind
from tests.integration.api.conftest import Person, add_key, offer_types
from tests.support.api_server import TIMEOUT_SECONDS, ApiServer, running_api
from tests.support.reservations import NOON, PUBLIC_KEY, open_test_stores

JOB = {"gpu_type": "t4", "gpu_count": 1, "duration_hours": 1, "ssh_public_keys": [PUBLIC_KEY]}
NO_PROOF = {"timestamp": 0, "nonce": "", "proof": ""}
AWS_KEYS = {"aws_access_key_id": "A" * 20, "aws_secret_access_key": "s" * 40}
NO_REQUEST: dict[str, Any] = {"url": "", "headers": {}, "body": ""}
SETTINGS = {
    "GPU_DEV_ADMINS": "local:admin",
    # Many of these keys are wrong on purpose, and one that is rotated is used again.
    "GPU_DEV_WRONG_KEYS_PER_MINUTE": "0",
    "GPU_DEV_KEY_OVERLAP_SECONDS": "3600",
}


@dataclass(frozen=True, slots=True)
class Row:
    """The status that each kind of caller is answered with; what the owner owns fills the path."""

    owner: int = 200
    stranger: int = 200
    admin: int = 200
    no_key: int = 401
    unknown_key: int = 401
    expired_key: int = 401
    revoked_key: int = 401
    disabled_user: int = 403
    body: Any = None


def public(status: int, body: Any = None) -> Row:
    """The same for everybody, with and without a key."""
    return replace(Row(body=body), **dict.fromkeys(CALLERS, status))


def of_admins(status: int = 200, body: Any = None) -> Row:
    return Row(owner=403, stranger=403, admin=status, body=body)


CALLERS = (
    "owner",
    "stranger",
    "admin",
    "no_key",
    "unknown_key",
    "expired_key",
    "revoked_key",
    "disabled_user",
)
TABLE = {
    "GET /": public(200),
    "GET /health": public(200),
    "GET /ready": public(200),
    "POST /v1/auth/local-login": public(401, NO_PROOF),
    "POST /v1/auth/aws-login": public(404, AWS_KEYS),
    "POST /v1/auth/github-challenge": public(404, {"sts_request": NO_REQUEST}),
    "GET /v1/me": Row(),
    "GET /v1/admin/usage": of_admins(),
    "GET /v1/me/notifications": Row(),
    "PUT /v1/me/notifications": Row(body={}),
    "POST /v1/me/notifications/test": Row(owner=404, stranger=404, admin=404),
    "GET /v1/keys": Row(),
    "POST /v1/keys/rotate": Row(),
    "DELETE /v1/keys/{prefix}": Row(stranger=404, admin=404),
    "POST /v1/jobs/{job_id}/stop": Row(owner=409, stranger=404, admin=409),
    "POST /v1/jobs/{job_id}/start": Row(owner=409, stranger=404, admin=409, body={}),
    "POST /v1/jobs/{job_id}/keep": Row(owner=409, stranger=404, admin=409, body={"hours": 1}),
    "POST /v1/jobs/{job_id}/jupyter/enable": Row(owner=400, stranger=404, admin=400),
    "POST /v1/jobs/{job_id}/jupyter/disable": Row(owner=400, stranger=404, admin=400),
    "POST /v1/jobs/{job_id}/users": Row(owner=400, stranger=404, admin=400),
    "DELETE /v1/jobs/{job_id}/users/{name}": Row(owner=400, stranger=404, admin=400),
    "GET /v1/jobs/{job_id}/usage": Row(stranger=404),
    "POST /v1/jobs/{job_id}/extend": Row(owner=409, stranger=404, admin=409, body={"extension_hours": 1}),
    "GET /v1/gpu/availability": Row(),
    "GET /v1/cluster/status": Row(),
    "GET /v1/queue": Row(),
    "GET /v1/queue/accuracy": Row(),
    "POST /v1/jobs/preview": Row(body=JOB),
    "POST /v1/jobs/submit": Row(body=JOB),
    "GET /v1/jobs": Row(),
    "GET /v1/jobs/{job_id}": Row(stranger=404),
    "POST /v1/jobs/{job_id}/cancel": Row(stranger=404),
    "GET /v1/jobs/{job_id}/events": Row(stranger=404),
    # There is no controller behind this service, so no reservation has a dev server.
    "GET /v1/jobs/{job_id}/logs": Row(owner=404, stranger=404, admin=404),
    "GET /v1/operations/{operation_id}": Row(stranger=404),
    "POST /v1/disks": Row(body={"disk_name": "made"}),
    "GET /v1/disks": Row(),
    "GET /v1/disks/{name}": Row(stranger=404, admin=404),
    "DELETE /v1/disks/{name}": Row(owner=409, stranger=404, admin=404),
    "POST /v1/disks/{name}/restore": Row(owner=409, stranger=404, admin=404, body={}),
    "POST /v1/disks/{name}/rename": Row(owner=409, stranger=404, admin=404, body={"new_name": "renamed"}),
    "POST /v1/disks/{name}/clone": Row(owner=409, stranger=404, admin=404, body={"new_name": "copy"}),
    "POST /v1/disks/{name}/grow": Row(owner=409, stranger=404, admin=404, body={"size_gb": 200}),
    "GET /v1/disks/{name}/content": Row(stranger=404, admin=404),
    "GET /v1/disks/{name}/snapshots": Row(stranger=404, admin=404),
    "GET /v1/disks/{name}/operations/{operation_id}": Row(stranger=404),
    "GET /v1/admin/disks/check": of_admins(),
    "GET /v1/admin/nodes": of_admins(),
    "POST /v1/admin/nodes/{name}/drain": of_admins(404, {}),
    "POST /v1/admin/nodes/{name}/undrain": of_admins(404),
    "GET /v1/admin/dead-letters": of_admins(),
    "POST /v1/admin/dead-letters/{name}/retry": of_admins(404),
    "POST /v1/admin/dead-letters/{name}/drop": of_admins(404),
    "GET /v1/admin/users": of_admins(),
    "POST /v1/admin/users/{name}/disable": of_admins(),
    "POST /v1/admin/users/{name}/enable": of_admins(),
    "GET /v1/admin/audit": of_admins(),
    "GET /v1/admin/audit/verify": of_admins(),
}
DISK_OPERATION = "d15c0000-0000-4000-8000-000000000009"
OF_DISKS = {"name": "owned", "operation_id": DISK_OPERATION}
"""A disk of the owner's that is still being made: nothing else can be done to it, and nothing is."""
NOT_IN_THE_DOCUMENT = {"GET /"}


@pytest.fixture(scope="module")
def api_server(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    asyncio.run(offer_types(module_database))
    with running_api(module_database, Path(tmp_path_factory.mktemp("state")), SETTINGS) as server:
        yield server


@pytest.fixture(scope="module")
def keys(make_person: Callable[..., Person], module_database: str) -> dict[str, str | None]:
    people = {
        "owner": make_person("owner"),
        "stranger": make_person("stranger"),
        "admin": make_person("admin"),
        "expired_key": make_person("expired", life=timedelta(seconds=-1)),
        "revoked_key": make_person("revoked"),
        "disabled_user": make_person("disabled", is_active=False),
    }
    asyncio.run(_revoke(module_database, "revoked"))
    return {"no_key": None, "unknown_key": "nonsense"} | {kind: who.key for kind, who in people.items()}


@pytest.fixture(scope="module")
def owned(
    api_server: ApiServer,
    keys: dict[str, str | None],
    make_person: Callable[..., Person],
    module_database: str,
) -> dict[str, str]:
    """What the owner has, by the names that paths give it, and a user whom nobody needs."""
    make_person("scapegoat")
    asyncio.run(add_key(module_database, "owner", "temporary-key-of-owner"))
    asyncio.run(_add_disk(module_database, "owner"))
    job = api_server.call("POST", "/v1/jobs/submit", JOB, keys["owner"]).json["job_id"]
    operation = api_server.call("POST", f"/v1/jobs/{job}/cancel", key=keys["owner"]).json["operation_id"]
    return {"job_id": job, "operation_id": operation, "prefix": "temporar", "name": "scapegoat"}


def test_every_route_has_a_row(api_server: ApiServer) -> None:
    paths = api_server.call("GET", "/openapi.json").json["paths"]
    routes = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert set(TABLE) == routes | NOT_IN_THE_DOCUMENT


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("route", TABLE)
def test_a_caller_is_answered_as_the_table_says(
    api_server: ApiServer, keys: dict[str, str | None], owned: dict[str, str], route: str, caller: str
) -> None:
    row, (method, path) = TABLE[route], route.split()
    names = {**owned, **OF_DISKS} if path.startswith("/v1/disks") else owned
    status = _ask(api_server, method, path.format(**names), keys[caller], row.body)
    assert status == getattr(row, caller)


def test_a_wrong_question_without_a_key_tells_nothing(api_server: ApiServer) -> None:
    """Its error would list what is on offer here."""
    answer = api_server.call("GET", "/v1/jobs?gpu_type=z9", key="nonsense")
    assert answer.status == 401


def _ask(server: ApiServer, method: str, path: str, key: str | None, body: Any) -> int:
    """The status alone: the answer may be a stream without an end."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=TIMEOUT_SECONDS)
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        return connection.getresponse().status
    finally:
        connection.close()


async def _add_disk(dsn: str, username: str) -> None:
    async with open_test_stores(dsn) as stores:
        user = await stores.users.upsert(username)
        disk = Disk(DiskId(str(uuid4())), DiskSpec(user.user_id, username, "owned", 20, NOON))
        operation = DiskOperation(OperationId(DISK_OPERATION), DiskOperationKind.CREATE, NOON)
        await stores.disks.create(disk, operation)


async def _revoke(dsn: str, username: str) -> None:
    async with open_test_stores(dsn) as stores:
        await stores.database.execute(
            "UPDATE api_keys SET is_active = false "
            "WHERE user_id = (SELECT user_id FROM api_users WHERE username = $1)",
            username,
        )
