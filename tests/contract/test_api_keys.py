"""What every store of API keys, failed logins and accounts must do, on real PostgreSQL."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gpudev.bootstrap.foundation import Stores
from gpudev.domain.audit import AuditAction, AuditEntry
from gpudev.domain.errors import Conflict, NotFound, Unauthenticated
from gpudev.ports.audit import AuditQuery
from gpudev.ports.users import NewKey, Rotation, User
from tests.support.reservations import NOON, make_reservation, submit

pytestmark = pytest.mark.anyio

ENTRY = AuditEntry("ada", AuditAction.KEY_ROTATED, "newnew01")
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
LOGIN = 3 * HOUR


@pytest.fixture
async def key(stores: Stores, user: User) -> bytes:
    await stores.users.add_key(user.user_id, NewKey(b"old", "oldold01", NOON + HOUR, NOON + LOGIN))
    return b"old"


async def count_entries(stores: Stores) -> int:
    return len(await stores.audit.list_page(AuditQuery()))


def a_rotation(user: User, overlap: timedelta = MINUTE) -> Rotation:
    return Rotation(user.user_id, b"old", NOON + overlap, NewKey(b"new", "newnew01", NOON + 2 * HOUR))


async def works(stores: Stores, key_hash: bytes, after: timedelta) -> bool:
    return await stores.users.find_by_key(key_hash, NOON + after) is not None


async def test_a_rotated_key_works_for_the_overlap_and_the_new_one_from_now_on(
    stores: Stores, user: User, key: bytes
) -> None:
    await stores.users.rotate_key(a_rotation(user), NOON, ENTRY)
    assert await works(stores, b"old", MINUTE / 2)
    assert not await works(stores, b"old", MINUTE)
    assert await works(stores, b"new", HOUR)
    assert await count_entries(stores) == 1


async def test_the_successors_of_a_key_end_with_its_login(stores: Stores, user: User, key: bytes) -> None:
    later = NOON + 59 * MINUTE
    middle = Rotation(user.user_id, b"old", later + MINUTE, NewKey(b"middle", "middle01", later + 2 * HOUR))
    assert await stores.users.rotate_key(middle, later, ENTRY) == later + 2 * HOUR
    much_later = later + 2 * HOUR - MINUTE
    last = Rotation(user.user_id, b"middle", much_later, NewKey(b"last", "lastlast", much_later + 2 * HOUR))
    assert await stores.users.rotate_key(last, much_later, ENTRY) == NOON + LOGIN
    assert await works(stores, b"last", LOGIN - MINUTE)
    assert not await works(stores, b"last", LOGIN)


async def test_a_key_has_one_successor(stores: Stores, user: User, key: bytes) -> None:
    await stores.users.rotate_key(a_rotation(user), NOON, ENTRY)
    second = Rotation(user.user_id, b"old", NOON + MINUTE, NewKey(b"second", "second01", NOON + HOUR))
    with pytest.raises(Conflict) as caught:
        await stores.users.rotate_key(second, NOON, ENTRY)
    assert caught.value.code == "key_has_successor"
    assert not await works(stores, b"second", MINUTE / 2)
    assert await count_entries(stores) == 1


async def test_a_key_stands_until_it_is_revoked_its_user_is_disabled_or_its_login_ends(
    stores: Stores, user: User, key: bytes
) -> None:
    async def standing(after: timedelta) -> frozenset[bytes]:
        return await stores.users.list_valid_keys({key, b"new", b"unknown"}, NOON + after)

    await stores.users.rotate_key(a_rotation(user), NOON, ENTRY)
    assert await standing(2 * HOUR) == {key, b"new"}, "although the old one has expired"
    assert await standing(LOGIN) == frozenset()
    await stores.users.revoke_key(user.user_id, "oldold01", ENTRY)
    assert await standing(MINUTE) == {b"new"}
    await stores.users.set_active(user.username, is_active=False, audit=ENTRY)
    assert await standing(MINUTE) == frozenset()


async def test_a_rotation_never_lengthens_a_life(stores: Stores, user: User, key: bytes) -> None:
    await stores.users.rotate_key(a_rotation(user, overlap=2 * HOUR), NOON, ENTRY)
    assert not await works(stores, b"old", HOUR)


async def test_a_key_that_was_revoked_meanwhile_gives_no_new_one(
    stores: Stores, user: User, key: bytes
) -> None:
    await stores.users.revoke_key(user.user_id, "oldold01", ENTRY)
    with pytest.raises(Unauthenticated):
        await stores.users.rotate_key(a_rotation(user), NOON, ENTRY)
    assert not await works(stores, b"new", MINUTE)
    assert await count_entries(stores) == 1


async def test_nobody_rotates_anothers_key(stores: Stores, user: User, key: bytes) -> None:
    with pytest.raises(Unauthenticated):
        await stores.users.rotate_key(a_rotation(await stores.users.upsert("eve")), NOON, ENTRY)
    assert await works(stores, b"old", 2 * MINUTE)


async def test_keys_are_listed_newest_first_with_what_tells_them_apart(
    stores: Stores, user: User, key: bytes
) -> None:
    await stores.users.add_key(user.user_id, NewKey(b"ended", "ended001", NOON - HOUR))
    await stores.users.add_key((await stores.users.upsert("eve")).user_id, NewKey(b"eve", "evesown1", NOON))
    ended, old = await stores.users.list_keys(user.user_id, key, NOON)
    assert (ended.prefix, ended.is_active, ended.is_current) == ("ended001", False, False)
    assert (old.prefix, old.is_active, old.is_current) == ("oldold01", True, True)
    assert old.last_used_at is None


async def test_a_revoked_key_is_no_key_and_revoking_it_again_changes_nothing(
    stores: Stores, user: User, key: bytes
) -> None:
    for _ in range(2):
        await stores.users.revoke_key(user.user_id, "oldold01", ENTRY)
        assert not await works(stores, key, MINUTE)
    assert await count_entries(stores) == 1


async def test_a_prefix_that_is_unknown_anothers_or_shared_revokes_nothing(
    stores: Stores, user: User, key: bytes
) -> None:
    eve = await stores.users.upsert("eve")
    with pytest.raises(NotFound):
        await stores.users.revoke_key(user.user_id, "unknown1", ENTRY)
    with pytest.raises(NotFound):
        await stores.users.revoke_key(eve.user_id, "oldold01", ENTRY)
    await stores.users.add_key(user.user_id, NewKey(b"twin", "oldold01", NOON + HOUR))
    with pytest.raises(Conflict) as caught:
        await stores.users.revoke_key(user.user_id, "oldold01", ENTRY)
    assert caught.value.code == "ambiguous_key"
    assert await works(stores, key, MINUTE)
    assert await count_entries(stores) == 0


async def test_the_latest_use_stays(stores: Stores, user: User, key: bytes) -> None:
    for at in (NOON + MINUTE, NOON):
        await stores.users.note_key_uses({key: at, b"unknown": at})
    (listed,) = await stores.users.list_keys(user.user_id, key, NOON)
    assert listed.last_used_at == NOON + MINUTE


async def test_the_failure_that_is_one_too_many_blocks_until_it_is_too_old(stores: Stores) -> None:
    failures, window = stores.users, 5 * MINUTE
    for minute in range(3):
        await failures.count_login_failure("10.0.0.1", NOON + minute * MINUTE, window)
    since = NOON - MINUTE
    assert await failures.find_login_block("10.0.0.1", since, 3) == NOON
    assert await failures.find_login_block("10.0.0.1", since, 2) == NOON + MINUTE
    assert await failures.find_login_block("10.0.0.1", since, 4) is None
    assert await failures.find_login_block("10.0.0.2", since, 1) is None
    assert await failures.find_login_block("10.0.0.1", NOON, 3) is None


async def test_old_failures_are_forgotten(stores: Stores) -> None:
    await stores.users.count_login_failure("10.0.0.1", NOON, MINUTE)
    await stores.users.count_login_failure("10.0.0.2", NOON + HOUR, MINUTE)
    assert await stores.database.fetch_value("SELECT count(*) FROM login_failures") == 1


async def test_a_disabled_user_has_no_keys_and_an_enabled_one_logs_in_again(
    stores: Stores, user: User, key: bytes
) -> None:
    entry = AuditEntry("root", AuditAction.DISABLE_USER, "ada")
    for _ in range(2):
        assert not (await stores.users.set_active("ada", is_active=False, audit=entry)).is_active
    assert not await works(stores, key, MINUTE)
    assert (await stores.users.set_active("ada", is_active=True, audit=entry)).is_active
    assert not await works(stores, key, MINUTE)
    assert await count_entries(stores) == 3


async def test_disabling_one_leaves_the_others_alone(stores: Stores, user: User, key: bytes) -> None:
    await stores.users.upsert("eve")
    await stores.users.set_active("eve", is_active=False, audit=ENTRY)
    assert await works(stores, key, MINUTE)


async def test_an_unknown_user_cannot_be_disabled(stores: Stores) -> None:
    with pytest.raises(NotFound, match="nobody"):
        await stores.users.set_active("nobody", is_active=False, audit=ENTRY)
    assert await count_entries(stores) == 0


async def test_users_are_listed_with_what_they_do(stores: Stores, user: User, key: bytes) -> None:
    await stores.users.upsert("Zoe")
    await submit(stores, make_reservation(user))
    await stores.users.note_key_uses({key: NOON})
    listed = {summary.user.username: summary for summary in await stores.users.list_all()}
    assert (listed["ada"].live_reservations, listed["ada"].last_used_at) == (1, NOON)
    assert (listed["Zoe"].live_reservations, listed["Zoe"].last_used_at) == (0, None)
    assert await stores.users.find_by_name("ada") == user
    assert await stores.users.find_by_name("nobody") is None


async def test_reservations_of_all_users_are_found_by_name_and_prefix(stores: Stores, user: User) -> None:
    eve = await stores.users.upsert("eve")
    mine = await submit(stores, make_reservation(user, name="train"))
    theirs = await submit(stores, make_reservation(eve, name="train"))
    found = await stores.reservations.list_matching_of_all("train")
    assert {reservation.id for reservation in found} == {mine.id, theirs.id}
    assert await stores.reservations.list_matching_of_all(theirs.id[:8]) == (theirs,)
