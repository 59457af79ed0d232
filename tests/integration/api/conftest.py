"""One API process a test module, and people who call it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gpudev.ports.users import NewKey
from tests.support.api_server import Answer, ApiServer, running_api
from tests.support.github import FakeGitHub, running_github
from tests.support.reservations import PUBLIC_KEY, open_test_stores


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with a key."""

    server: ApiServer
    username: str
    key: str

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        return self.server.call(method, path, body, self.key, **headers)

    def submit(self, key: str = "", **changes: Any) -> Answer:
        """Without a disk, unless it is about one: a second reservation would be warned of the first."""
        asked = {"gpu_type": "t4", "gpu_count": 1, "duration_hours": 1, "ssh_public_keys": [PUBLIC_KEY]}
        asked |= {"disk_name": "none"}
        headers = {"Idempotency_Key": key} if key else {}
        return self.call("POST", "/v1/jobs/submit", {**asked, **changes}, **headers)

    def get(self, job: str) -> dict[str, Any]:
        found: dict[str, Any] = self.call("GET", f"/v1/jobs/{job}").json
        return found


@pytest.fixture(scope="module")
def github() -> Iterator[FakeGitHub]:
    with running_github() as running:
        yield running


@pytest.fixture(scope="module")
def api_server(
    module_database: str, github: FakeGitHub, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ApiServer]:
    asyncio.run(offer_types(module_database))
    state_dir = Path(tmp_path_factory.mktemp("state"))
    with running_api(module_database, state_dir, {"GPU_DEV_GITHUB_URL": github.url}) as server:
        yield server


@pytest.fixture(scope="module")
def make_person(api_server: ApiServer, module_database: str) -> Callable[..., Person]:
    def make(username: str, *, is_active: bool = True, life: timedelta = timedelta(hours=1)) -> Person:
        key = f"key-of-{username}"
        asyncio.run(_add_person(module_database, username, key, is_active=is_active, life=life))
        return Person(api_server, username, key)

    return make


@pytest.fixture(scope="module")
def ada(make_person: Callable[..., Person]) -> Person:
    return make_person("ada")


@pytest.fixture(scope="module")
def eve(make_person: Callable[..., Person]) -> Person:
    return make_person("eve")


async def offer_types(dsn: str) -> None:
    async with open_test_stores(dsn):
        pass


async def _add_person(dsn: str, username: str, key: str, *, is_active: bool, life: timedelta) -> None:
    await add_key(dsn, username, key, life)
    async with open_test_stores(dsn) as stores:
        if not is_active:
            await stores.database.execute(
                "UPDATE api_users SET is_active = false WHERE username = $1", username
            )


async def add_key(dsn: str, username: str, key: str, life: timedelta = timedelta(hours=1)) -> None:
    """Another key of this user, who is made if new."""
    async with open_test_stores(dsn) as stores:
        user = await stores.users.upsert(username)
        hashed = hashlib.sha256(key.encode()).digest()
        await stores.users.add_key(user.user_id, NewKey(hashed, key[:8], datetime.now(UTC) + life))
