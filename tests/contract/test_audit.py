"""What every audit log must do, on real PostgreSQL: take entries, seal them, and show every tampering."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import asyncpg
import pytest

from gpudev.adapters.postgres.pool import Database
from gpudev.app.audit_log import Anchor, Verification, verify
from gpudev.bootstrap.foundation import Stores
from gpudev.domain.audit import LATE, AuditAction, AuditEntry, AuditOutcome, FindingKind
from gpudev.domain.errors import Conflict
from gpudev.domain.names import OperationId
from gpudev.domain.reservation import Event
from gpudev.ports.audit import AuditQuery
from gpudev.ports.users import NewKey, User
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import EventKind, OperationKind
from tests.support.reservations import NOON, make_reservation, open_test_stores, submit

pytestmark = pytest.mark.anyio


ENTRY = AuditEntry("ada", AuditAction.SUBMIT, "7f3a91c2", "10.0.0.1", detail='Words with "quotes" and ü.')
PLENTY = 1000
ADD_ENTRY = """
INSERT INTO audit_entries (at, username, action, target, address, outcome, detail)
VALUES (now() - $1::interval, 'eve', 'submit', '', '', 'done', '')
"""


@pytest.fixture
async def stores(database: str) -> AsyncIterator[Stores]:
    """As the owner of the tables: nobody else could tamper with the log at all."""
    async with open_test_stores(database) as opened:
        yield opened


async def write(stores: Stores, count: int) -> None:
    for number in range(count):
        await stores.audit.write(AuditEntry("ada", AuditAction.SUBMIT, f"target-{number}"))


async def tamper(stores: Stores, statement: str) -> None:
    """As a superuser who has turned the triggers off."""
    async with stores.database.transaction() as connection:
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute(statement)


async def findings(stores: Stores) -> list[tuple[FindingKind, int | None, int | None]]:
    found = (await verify(stores.audit, None)).findings
    return [(finding.kind, finding.entry_id, finding.seal_number) for finding in found]


async def actions(stores: Stores) -> list[str]:
    page = await stores.audit.list_page(AuditQuery())
    return [record.entry.action for record in reversed(page)]


async def test_entries_are_read_as_they_were_written_newest_first(stores: Stores) -> None:
    await stores.audit.write(ENTRY)
    await stores.audit.write(AuditEntry("", AuditAction.LOGIN, outcome=AuditOutcome.REFUSED))
    second, first = await stores.audit.list_page(AuditQuery())
    assert first.entry == ENTRY
    assert second.entry_id > first.entry_id
    assert second.at >= first.at


async def test_pages_and_filters(stores: Stores) -> None:
    await write(stores, 5)
    await stores.audit.write(AuditEntry("eve", AuditAction.CANCEL))
    first = await stores.audit.list_page(AuditQuery(limit=4))
    rest = await stores.audit.list_page(AuditQuery(limit=4, before=first[-1].entry_id))
    assert [len(first), len(rest)] == [4, 2]
    assert not {record.entry_id for record in first} & {record.entry_id for record in rest}
    assert len(await stores.audit.list_page(AuditQuery(username="eve"))) == 1
    assert len(await stores.audit.list_page(AuditQuery(action="submit"))) == 5
    assert len(await stores.audit.list_page(AuditQuery(since=first[0].at))) == 1
    assert len(await stores.audit.list_page(AuditQuery(until=first[0].at))) == 5


@pytest.mark.parametrize("table", ["audit_entries", "audit_seals", "audit_digests"])
@pytest.mark.parametrize("statement", ["DELETE FROM {}", "TRUNCATE {} CASCADE", "UPDATE {} SET {}"])
async def test_the_database_refuses_every_change(stores: Stores, table: str, statement: str) -> None:
    await write(stores, 1)
    await stores.audit.seal(PLENTY)
    column = {"audit_entries": "username = ''", "audit_seals": "hash = ''", "audit_digests": "digest = ''"}
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
        await stores.database.execute(statement.format(table, column[table]))
    assert await findings(stores) == []


async def test_seals_follow_each_other_and_cover_everything(stores: Stores) -> None:
    assert await stores.audit.seal(PLENTY) is None
    await write(stores, 3)
    first = await stores.audit.seal(PLENTY)
    assert await stores.audit.seal(PLENTY) is None
    await write(stores, 2)
    second = await stores.audit.seal(PLENTY)
    assert first
    assert second
    assert (first.number, first.entries, second.number, second.entries) == (1, 3, 2, 2)
    assert second.previous_hash == first.hash
    assert await stores.audit.list_seals(0, PLENTY) == (first, second)
    assert await stores.audit.list_unsealed() == ()
    assert await verify(stores.audit, None) == Verification(2, 5, 0, second, ())


async def test_a_backlog_is_sealed_in_batches_however_old_it_is(stores: Stores) -> None:
    """A seal over a part must not make the rest look as if it had been added later."""
    await write(stores, 5)
    await tamper(stores, "UPDATE audit_entries SET at = at - interval '1 day' + entry_id * interval '1 hour'")
    sizes = []
    while seal := await stores.audit.seal(2):
        sizes.append(seal.entries)
    assert sizes == [2, 2, 1]
    assert await findings(stores) == []


async def test_two_sealers_at_once_make_one_chain(stores: Stores, database: str) -> None:
    other = Database(database)
    await other.open()
    try:
        rivals = (stores, Stores.on(other))
        for _ in range(5):
            await write(stores, 3)
            made = await asyncio.gather(*(rival.audit.seal(PLENTY) for rival in rivals for _ in range(4)))
            assert sum(seal.entries for seal in made if seal) == 3
    finally:
        await other.close()
    assert await verify(stores.audit, None) == Verification(
        5, 15, 0, (await stores.audit.list_seals(4, 1))[0], ()
    )


async def test_a_transaction_that_commits_late_is_sealed_and_keeps_nobody_waiting(
    stores: Stores, database: str
) -> None:
    """Its entry has a smaller number than those that are sealed before it."""
    late = await asyncpg.connect(database)
    try:
        async with late.transaction():
            await late.execute(ADD_ENTRY, timedelta(0))
            await write(stores, 2)
            first = await stores.audit.seal(PLENTY)
    finally:
        await late.close()
    second = await stores.audit.seal(PLENTY)
    assert first
    assert second
    assert (first.entries, second.entries) == (2, 1)
    assert second.first_id < first.first_id
    assert await findings(stores) == []


async def sealed_log(stores: Stores) -> None:
    """Entries 1 to 3 under seal 1, entries 4 to 6 under seal 2."""
    for _ in range(2):
        await write(stores, 3)
        await stores.audit.seal(PLENTY)


@pytest.mark.parametrize(
    "statement,expected",
    [
        ("UPDATE audit_entries SET username = 'eve' WHERE entry_id = 2", [(FindingKind.CHANGED, 2, 1)]),
        (
            "UPDATE audit_entries SET at = at - interval '1 day' WHERE entry_id = 5",
            [(FindingKind.CHANGED, 5, 2)],
        ),
        ("DELETE FROM audit_entries WHERE entry_id = 3", [(FindingKind.MISSING, 3, 1)]),
        (
            "DELETE FROM audit_entries WHERE entry_id IN (1, 6)",
            [(FindingKind.MISSING, 1, 1), (FindingKind.MISSING, 6, 2)],
        ),
        ("DELETE FROM audit_digests WHERE entry_id = 3", [(FindingKind.BROKEN_SEAL, None, 1)]),
        ("DELETE FROM audit_seals WHERE number = 1", [(FindingKind.MISSING, None, 1)]),
        (
            "UPDATE audit_seals SET known_until = now() - interval '1 day' WHERE number = 2",
            [(FindingKind.BROKEN_SEAL, None, 2)],
        ),
        (
            "UPDATE audit_seals SET previous_hash = '\\x00' WHERE number = 2",
            [(FindingKind.BROKEN_CHAIN, None, 2), (FindingKind.BROKEN_SEAL, None, 2)],
        ),
    ],
    ids=["changed", "moved", "removed", "two-removed", "digest-removed", "seal-removed", "seal", "chain"],
)
async def test_tampering_is_found_and_named(
    stores: Stores, statement: str, expected: list[tuple[FindingKind, int | None, int | None]]
) -> None:
    await sealed_log(stores)
    assert await findings(stores) == []
    await tamper(stores, statement)
    assert await findings(stores) == expected


async def test_an_entry_that_was_added_for_an_earlier_time_is_named_and_never_sealed(stores: Stores) -> None:
    await sealed_log(stores)
    await stores.database.execute(ADD_ENTRY, LATE + timedelta(minutes=1))
    await write(stores, 1)
    seal = await stores.audit.seal(PLENTY)
    assert seal
    assert seal.entries == 1
    assert await findings(stores) == [(FindingKind.ADDED, 7, None)]


async def test_a_log_that_was_cut_off_or_made_anew_is_shown_by_a_hash_that_was_noted(stores: Stores) -> None:
    await sealed_log(stores)
    noted = (await stores.audit.list_seals(1, 1))[0]
    anchor = Anchor(noted.number, noted.hash)
    assert (await verify(stores.audit, anchor)).findings == ()
    await tamper(stores, "DELETE FROM audit_digests WHERE seal_number = 2")
    await tamper(stores, "DELETE FROM audit_entries WHERE entry_id > 3")
    await tamper(stores, "DELETE FROM audit_seals WHERE number = 2")
    assert (await verify(stores.audit, None)).findings == ()
    (cut,) = (await verify(stores.audit, anchor)).findings
    assert (cut.kind, cut.seal_number) == (FindingKind.MISSING, 2)
    await write(stores, 1)
    await stores.audit.seal(PLENTY)
    (anew,) = (await verify(stores.audit, anchor)).findings
    assert (anew.kind, anew.seal_number) == (FindingKind.BROKEN_CHAIN, 2)


async def test_a_submit_and_its_entry_are_written_together_or_not_at_all(stores: Stores, user: User) -> None:
    entry = AuditEntry("ada", AuditAction.SUBMIT, "id")
    event = Event(EventKind.SUBMITTED, fact("words", words="Asked."), NOON)
    reservation = make_reservation(user)
    await stores.reservations.submit(reservation, event, (entry,))
    with pytest.raises(Conflict):
        await stores.reservations.submit(reservation, event, (entry,))
    assert await actions(stores) == ["submit"]


async def test_an_operation_is_written_together_with_its_entry(stores: Stores, user: User) -> None:
    reservation = await submit(stores, make_reservation(user))
    operation_id = OperationId("00000000-0000-4000-8000-000000000001")
    entry = AuditEntry("ada", AuditAction.CANCEL, reservation.id)
    await stores.operations.request(operation_id, reservation, OperationKind.CANCEL, NOON, (entry,))
    missing = make_reservation(user)
    await stores.operations.request(operation_id, missing, OperationKind.CANCEL, NOON, (entry,))
    assert await actions(stores) == ["cancel"]


async def test_revoking_all_keys_is_written_down_if_there_were_any(stores: Stores, user: User) -> None:
    entry = AuditEntry("(server)", AuditAction.KEY_REVOKED)
    await stores.users.revoke_keys(entry)
    assert await actions(stores) == []
    await stores.users.add_key(user.user_id, NewKey(b"hash", "prefix", NOON))
    await stores.users.revoke_keys(entry)
    assert await actions(stores) == ["key_revoked"]
