"""`gpu-dev server expire` and `refresh`, as jobs by the clock run them: processes with a real database."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudev.adapters.local.control_plane.state import StateFolder
from gpudev.domain.lifecycle import Status
from gpudev.domain.names import OperationId
from gpudev.domain.reservation import OperationKind
from tests.support.machine import Machine
from tests.support.reservations import NOON, make_reservation, open_test_stores, submit

pytestmark = pytest.mark.anyio

OPERATION = OperationId("11111111-1111-4111-8111-111111111111")


@pytest.fixture
def job(database: str, tmp_path: Path) -> Machine:
    """Where nothing but such a job runs."""
    StateFolder(tmp_path / "state").prepare()
    settings = {
        "GPU_DEV_DATABASE_URL": database,
        "GPU_DEV_STATE_DIR": str(tmp_path / "state"),
        "GPU_DEV_FLEET": "test",
        "GPU_DEV_ISOLATION": "none",
        "HOSTNAME": "availability-updater-1",
    }
    return Machine(tmp_path, settings)


async def test_refresh_writes_down_what_is_free_and_who_says_so(job: Machine, database: str) -> None:
    job.run("server", "refresh")
    async with open_test_stores(database) as stores:
        (row,) = await stores.database.fetch(
            "SELECT total_cluster_gpus, last_availability_updated_by FROM gpu_types WHERE gpu_type = 't4'"
        )
    assert row["total_cluster_gpus"] > 0
    assert row["last_availability_updated_by"] == "availability-updater-1"


async def test_expire_does_what_is_due_and_then_finds_nothing(job: Machine, database: str) -> None:
    """A cancellation that no controller has looked at."""
    async with open_test_stores(database) as stores:
        asked = await submit(stores, make_reservation(await stores.users.upsert("ada")))
        await stores.operations.request(OPERATION, asked, OperationKind.CANCEL, NOON)
        assert job.run("server", "expire").stdout == "due 1\n"
        assert (await stores.reservations.get(asked.id)).status is Status.CANCELLED
    assert job.run("server", "expire").stdout == "due 0\n"
