"""The audit log is verified by itself, and that its end is missing is found, which the log cannot show."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from prometheus_client import REGISTRY

from gpudev.app.controllers.chores import VerifyAudit
from gpudev.bootstrap.foundation import Stores, SystemClock
from gpudev.domain.audit import AuditAction, AuditEntry, FindingKind
from tests.support.reservations import open_test_stores

pytestmark = pytest.mark.anyio

ENTRY = AuditEntry("ada", AuditAction.SUBMIT)
PLENTY = 1000


@pytest.fixture
async def stores(database: str) -> AsyncIterator[Stores]:
    """As the owner of the tables, who can cut the log off."""
    async with open_test_stores(database) as opened:
        yield opened


def figure(name: str) -> float | None:
    return REGISTRY.get_sample_value(f"gpu_dev_audit_{name}")


async def seal(stores: Stores) -> None:
    await stores.audit.write(ENTRY)
    await stores.audit.seal(PLENTY)


async def cut_off(stores: Stores, number: int) -> None:
    """Everything from this seal on, as if it had never been."""
    async with stores.database.transaction() as connection:
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute("DELETE FROM audit_entries WHERE entry_id >= $1", number)
        await connection.execute("DELETE FROM audit_digests WHERE seal_number >= $1", number)
        await connection.execute("DELETE FROM audit_seals WHERE number >= $1", number)


async def test_the_result_is_a_metric(stores: Stores) -> None:
    verify = VerifyAudit(stores.audit, SystemClock()).verify
    assert (await verify()).findings == (), "an empty log is intact"
    await seal(stores)
    await seal(stores)
    assert (await verify()).findings == ()
    assert (figure("findings"), figure("seals")) == (0, 2)
    assert (figure("verified_timestamp_seconds") or 0) > 0


async def test_a_log_whose_end_is_cut_off_is_found(stores: Stores) -> None:
    verify = VerifyAudit(stores.audit, SystemClock()).verify
    for _ in range(3):
        await seal(stores)
    await verify()
    await cut_off(stores, 3)
    for _ in range(2):
        found = (await verify()).findings
        assert [(one.kind, one.seal_number) for one in found] == [(FindingKind.MISSING, 3)]
        assert figure("findings") == 1
    await seal(stores)
    found = (await verify()).findings
    assert [one.kind for one in found] == [FindingKind.BROKEN_CHAIN], "another seal 3 does not help"
