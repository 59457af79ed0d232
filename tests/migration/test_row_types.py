"""Rows are parameters of a submit, and migrations may add columns to their tables while processes run."""

from __future__ import annotations

import asyncpg
import pytest

from gpudev.adapters.postgres.migrate import migrate
from gpudev.domain.errors import StoreUnavailable
from tests.support.reservations import make_reservation, open_test_stores, submit

pytestmark = pytest.mark.anyio


async def test_a_process_goes_on_after_a_table_has_a_new_column(empty_database: str) -> None:
    connection = await asyncpg.connect(empty_database)
    await migrate(connection)
    async with open_test_stores(empty_database) as stores:
        user = await stores.users.upsert("ada")
        await submit(stores, make_reservation(user))
        await connection.execute("ALTER TABLE reservation_settings ADD COLUMN later text")
        with pytest.raises(StoreUnavailable):
            await submit(stores, make_reservation(user))
        again = make_reservation(user)
        assert (await submit(stores, again)).settings == again.settings
    await connection.close()
