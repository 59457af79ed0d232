"""What `/ready` says of the parts that the API does not consist of."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.api.conftest import offer_types
from tests.support.api_server import ApiServer, running_api
from tests.support.reservations import open_test_stores


@pytest.fixture(scope="module")
def api(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    asyncio.run(offer_types(module_database))
    with running_api(module_database, Path(tmp_path_factory.mktemp("state"))) as server:
        yield server


def beat(database: str, name: str, seconds_ago: int, *failing: str) -> None:
    async def write() -> None:
        async with open_test_stores(database) as stores:
            await stores.health.beat(name, failing)
            await stores.database.execute(
                "UPDATE controllers SET beat_at = beat_at - $1 * interval '1 second' WHERE name = $2",
                seconds_ago,
                name,
            )

    asyncio.run(write())


def test_ready_tells_how_the_controllers_are(api: ApiServer, module_database: str) -> None:
    unseen = api.call("GET", "/ready")
    assert (unseen.status, unseen.json["status"], unseen.json["controller"]) == (
        200,
        "degraded",
        "never seen",
    )
    beat(module_database, "one", 90)
    silent = api.call("GET", "/ready").json
    assert silent["status"] == "degraded"
    assert silent["controller"].startswith("not heard of for 9")
    beat(module_database, "two", 0)
    well = api.call("GET", "/ready").json
    assert (well["status"], well["controller"], well["disk"], well["failing"]) == (
        "healthy",
        "running",
        "ok",
        [],
    )
    beat(module_database, "two", 0, "sampling", "pruning")
    failing = api.call("GET", "/ready")
    assert (failing.status, failing.json["status"]) == (200, "degraded")
    assert failing.json["failing"] == ["pruning", "sampling"]
    assert "controller" not in api.call("GET", "/health").json


def test_what_a_silent_controller_said_last_is_not_said_again(api: ApiServer, module_database: str) -> None:
    beat(module_database, "one", 90, "sampling")
    beat(module_database, "two", 0)
    assert api.call("GET", "/ready").json["failing"] == []


def test_a_full_disk_is_not_ready(module_database: str, tmp_path: Path) -> None:
    beat(module_database, "two", 0)
    with running_api(module_database, tmp_path, {"GPU_DEV_MIN_FREE_MIB": str(1 << 40)}) as server:
        full = server.call("GET", "/ready")
    assert (full.status, full.json["status"], full.json["disk"]) == (503, "unhealthy", "full")
