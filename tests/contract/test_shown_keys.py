"""Reads that find out who is asking in the same statement: nobody gets more by them than by two."""

from __future__ import annotations

import uuid
from dataclasses import fields, replace
from datetime import timedelta

import pytest

from gpudev.bootstrap.foundation import Stores
from gpudev.domain.audit import SERVER_ITSELF, AuditAction, AuditEntry
from gpudev.domain.disk import DiskId
from gpudev.domain.plans.turn import Record
from gpudev.domain.reservation import Event, Reservation, end
from gpudev.ports.reservations import HomeWish, ListQuery, MarkedPage
from gpudev.ports.users import NewKey, ShownKey, User
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import EventKind, Reason, Status
from tests.support.reservations import NOON, make_reservation, submit

pytestmark = pytest.mark.anyio

NOT_SHOWN = {
    *("env_vars", "ssh_public_keys", "placed_at", "last_queue_update"),
    *("cancelled_at", "cleaned_at", "is_cleaned", "holds_room"),
    *("told_notices", "progress", "progress_at", "stale_since", "driven_at"),
    *("usage_at", "idle_since", "signals", "image", "port_slot", "planned_nodes"),
}
"""What only the server of a reservation and the rules need, and is not read to be shown."""


async def test_a_listed_row_reads_as_the_reservation_it_holds(stores: Stores, user: User) -> None:
    mine = await submit(stores, make_reservation(user, name="my-run", env_vars={"A": "1"}))
    key = await add_key(stores, user)
    _, [found] = await stores.reservations.list_matching_for_key(key, "my-run")
    properties = {name for name, value in vars(Reservation).items() if isinstance(value, property)}
    for name in ({field.name for field in fields(Reservation)} | properties) - NOT_SHOWN:
        assert getattr(found, name) == getattr(mine, name), name


@pytest.mark.parametrize("text", ["whole", "prefix", "name", "nonsense"])
async def test_who_asks_is_found_out_with_what_is_asked_for(stores: Stores, user: User, text: str) -> None:
    mine = await submit(stores, make_reservation(user, name="my-run"))
    key, stranger = await add_key(stores, user), await stores.users.upsert("eve")
    of_stranger = await add_key(stores, stranger)
    spelled = {"whole": mine.id, "prefix": mine.id[:4], "name": "my-run", "nonsense": "nonsense"}[text]
    asked_by, found = await stores.reservations.list_matching_for_key(key, spelled)
    assert asked_by == user
    assert [reservation.id for reservation in found] == ([] if text == "nonsense" else [mine.id])
    assert await stores.reservations.list_matching_for_key(of_stranger, spelled) == (stranger, ())


async def test_a_page_for_a_key_is_its_owners(stores: Stores, user: User) -> None:
    mine = await submit(stores, make_reservation(user))
    key, stranger = await add_key(stores, user), await stores.users.upsert("eve")
    for query in (ListQuery(), ListQuery(statuses=(Status.PENDING,)), ListQuery(gpu_type="t4")):
        asked_by, page = await stores.reservations.list_marks_for_key(key, query)
        found = await stores.reservations.find_marked(page.marks)
        assert [marked.reservation.id for marked in found.values()] == [mine.id]
        assert (asked_by, page.total) == (user, 1)
    asked_by, page = await stores.reservations.list_marks_for_key(key, ListQuery(gpu_type="h100"))
    assert (asked_by, page) == (user, MarkedPage((), 0))
    asked_by, page = await stores.reservations.list_marks_for_key(
        key, ListQuery(statuses=(Status.ACTIVE,), gpu_type="t4")
    )
    assert (asked_by, page) == (user, MarkedPage((), 0))
    asked_by, page = await stores.reservations.list_marks_for_key(key, ListQuery(offset=7))
    assert (asked_by, page) == (user, MarkedPage((), 1))
    asked_by, page = await stores.reservations.list_marks_for_key(
        await add_key(stores, stranger), ListQuery(user.user_id)
    )
    assert (asked_by, page) == (stranger, MarkedPage((), 0))


@pytest.mark.parametrize("wrong", ["unknown", "expired", "revoked"])
async def test_a_key_that_is_no_good_gets_nothing(stores: Stores, user: User, wrong: str) -> None:
    await submit(stores, make_reservation(user, name="my-run"))
    key = await add_key(stores, user)
    if wrong == "unknown":
        key = replace(key, key_hash=b"another")
    if wrong == "expired":
        key = replace(key, at=key.at + timedelta(hours=3))
    if wrong == "revoked":
        await stores.users.revoke_keys(AuditEntry(SERVER_ITSELF, AuditAction.KEY_REVOKED))
    assert await stores.reservations.list_matching_for_key(key, "my-run") == (None, ())
    assert await stores.reservations.list_marks_for_key(key, ListQuery()) == (None, MarkedPage((), 0))
    assert await stores.nodes.list_availability_for_key(key) == (None, ())


async def test_a_disabled_user_is_told_apart_from_a_wrong_key(stores: Stores, user: User) -> None:
    key = await add_key(stores, user)
    await stores.database.execute("UPDATE api_users SET is_active = false")
    asked_by, _ = await stores.reservations.list_matching_for_key(key, "nonsense")
    assert asked_by is not None
    assert not asked_by.is_active


async def test_a_submitter_learns_whether_their_disk_is_in_use(stores: Stores, user: User) -> None:
    stranger = await stores.users.upsert("mallory")
    key = await add_key(stores, user)
    assert await stores.reservations.find_submitter(key, "work") == (user, False)
    home = HomeWish("work", DiskId(str(uuid.uuid4())))
    reservation = await submit(stores, make_reservation(user), home)
    assert await stores.reservations.find_submitter(key, "work") == (user, True)
    assert await stores.reservations.find_submitter(key, "other") == (user, False)
    theirs = await add_key(stores, stranger)
    assert await stores.reservations.find_submitter(theirs, "work") == (stranger, False)
    assert await stores.reservations.find_submitter(replace(key, key_hash=b"x"), "work") == (None, False)
    ended = end(reservation, Status.CANCELLED, Reason.CANCELLED_BY_USER, NOON)
    claim = await stores.reservations.claim(reservation.id, timedelta(seconds=30))
    assert claim is not None
    event = Event(EventKind.CANCELLED, fact("reason_cancelled_by_user"), NOON)
    await stores.reservations.record(claim, Record(claim.reservation, ended, event))
    assert await stores.reservations.find_submitter(key, "work") == (user, False)


async def test_the_room_for_a_key_is_the_room(stores: Stores, user: User) -> None:
    asked_by, rooms = await stores.nodes.list_availability_for_key(await add_key(stores, user))
    assert asked_by == user
    assert rooms == await stores.nodes.list_availability()


async def add_key(stores: Stores, user: User) -> ShownKey:
    key_hash = user.username.encode()
    await stores.users.add_key(user.user_id, NewKey(key_hash, "prefix", NOON + timedelta(hours=2)))
    return ShownKey(key_hash, NOON)
