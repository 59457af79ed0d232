"""What every store of reservations must do, on real PostgreSQL."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from datetime import timedelta

import asyncpg
import pytest

from gpudev.bootstrap.foundation import Stores
from gpudev.domain.errors import Conflict, NotFound, Stale
from gpudev.domain.names import NodeName, OperationId, ReservationId
from gpudev.domain.operations import Operation, OperationOutcome, Terms
from gpudev.domain.plans.reservation import end_with_defect
from gpudev.domain.plans.turn import Record
from gpudev.domain.reservation import Event, Reservation, activate, clean, end, place
from gpudev.domain.server import Member, SshAddress
from gpudev.ports.reservations import Claim, ListQuery
from gpudev.ports.turns import Kind
from gpudev.ports.users import User
from gpudev.texts.fact import fact
from gpudev.texts.vocabulary import EventKind, OperationKind, OperationStatus, Outcome, Reason, Status
from tests.support.parts import PART_OF, change
from tests.support.reservations import NOON, make_reservation, open_test_stores, submit

pytestmark = pytest.mark.anyio

LEASE = timedelta(seconds=30)
OPERATION = OperationId("11111111-1111-4111-8111-111111111111")


MIND_THE_GAP = fact("words", words="Mind the gap.")


def placing(reservation: Reservation) -> Record:
    event = Event(EventKind.PLACED, fact("words", words="Placed."), NOON + timedelta(seconds=2))
    return Record(reservation, place(reservation, (NodeName("t4-0"),), NOON), event)


def cancelling(reservation: Reservation, *outcomes: OperationOutcome) -> Record:
    after = end(reservation, Status.CANCELLED, Reason.CANCELLED_BY_USER, NOON)
    event = Event(EventKind.CANCELLED, after.state.detail, NOON, Reason.CANCELLED_BY_USER)
    return Record(reservation, after, event, outcomes)


async def claim(stores: Stores, reservation: Reservation) -> Claim:
    claimed = await stores.reservations.claim(reservation.id, LEASE)
    assert claimed is not None
    return claimed


async def test_a_submit_leaves_the_row_its_event_and_its_message(stores: Stores, user: User) -> None:
    asked = make_reservation(
        user, env_vars={"A": "1"}, github_user="ada", warnings=(MIND_THE_GAP,), time_zone="Europe/Berlin"
    )
    stored = await submit(stores, asked)
    assert change(stored, last_updated=None) == asked
    (event,) = await stores.reservations.list_events(asked.id, after=0)
    assert (event.number, event.event.kind, event.elapsed) == (1, EventKind.SUBMITTED, timedelta())
    (message,) = await stores.messages.of_reservations.read(10)
    assert message.key == asked.id


async def test_a_refused_submit_leaves_neither_row_nor_message(stores: Stores, user: User) -> None:
    await submit(stores, make_reservation(user, name="mine"))
    twin = make_reservation(user, name="mine")
    with pytest.raises(Conflict) as refused:
        await submit(stores, twin)
    assert refused.value.code == "name_taken"
    with pytest.raises(NotFound):
        await stores.reservations.get(twin.id)
    assert await stores.messages.of_reservations.count() == 1


async def test_a_name_is_free_again_when_its_reservation_has_ended(stores: Stores, user: User) -> None:
    first = await submit(stores, make_reservation(user, name="mine"))
    await stores.reservations.record(await claim(stores, first), cancelling(first))
    await submit(stores, make_reservation(user, name="mine"))


async def test_two_reservations_never_share_their_first_eight_characters(stores: Stores, user: User) -> None:
    first = await submit(stores, make_reservation(user))
    clash = ReservationId(first.id[:9] + make_reservation(user).id[9:])
    with pytest.raises(Conflict) as refused:
        await submit(stores, make_reservation(user, id=clash))
    assert refused.value.code == "id_taken"


async def test_a_record_writes_change_event_and_version(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    placed = await stores.reservations.record(await claim(stores, asked), placing(asked))
    stored = await stores.reservations.get(asked.id)
    assert (stored.state.status, stored.node, stored.version) == (Status.PREPARING, "t4-0", 2)
    assert placed.version == stored.version
    *_, event = await stores.reservations.list_events(asked.id, after=1)
    assert (event.number, event.event.kind) == (2, EventKind.PLACED)
    assert event.elapsed == timedelta(seconds=2)


async def test_a_late_writer_is_rejected_and_leaves_no_trace(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    claimed = await claim(stores, asked)
    await stores.reservations.record(claimed, placing(asked))
    with pytest.raises(Stale):
        await stores.reservations.record(claimed, cancelling(asked))
    assert len(await stores.reservations.list_events(asked.id, after=0)) == 2


async def test_a_writer_without_the_lease_is_rejected(stores: Stores, user: User, database: str) -> None:
    asked = await submit(stores, make_reservation(user))
    claimed = await claim(stores, asked)
    lease = replace(claimed.lease, token="22222222-2222-4222-8222-222222222222")
    stranger = replace(claimed, lease=lease)
    with pytest.raises(Stale):
        await stores.reservations.record(stranger, placing(asked))


async def test_one_process_at_a_time_has_the_lease(stores: Stores, user: User, database: str) -> None:
    asked = await submit(stores, make_reservation(user))
    async with open_test_stores(database) as other_process:
        mine = await claim(stores, asked)
        assert await other_process.reservations.claim(asked.id, LEASE) is None
        assert await stores.reservations.claim(asked.id, LEASE) is not None, "our own lease is no obstacle"
        await stores.turns.end(mine.lease, None)
        assert await other_process.reservations.claim(asked.id, LEASE) is not None


async def test_a_lease_that_ran_out_is_anybodys(stores: Stores, user: User, database: str) -> None:
    asked = await submit(stores, make_reservation(user))
    await stores.reservations.claim(asked.id, timedelta(seconds=-1))
    async with open_test_stores(database) as other_process:
        assert await other_process.reservations.claim(asked.id, LEASE) is not None


async def test_a_successor_takes_over_what_a_dead_controller_held_and_looks_at_everything(
    stores: Stores, user: User, database: str
) -> None:
    held, quiet = [await submit(stores, make_reservation(user)) for _ in range(2)]
    await stores.turns.end((await claim(stores, quiet)).lease, NOON + timedelta(hours=9))
    await claim(stores, held)
    async with open_test_stores(database) as successor:
        await successor.turns.take_over(Kind.RESERVATION, NOON)
        assert set(await successor.turns.list_due(Kind.RESERVATION, NOON, 10)) == {held.id, quiet.id}
        assert await successor.reservations.claim(held.id, LEASE) is not None


async def test_of_many_writers_at_once_exactly_one_wins(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    claimed = await claim(stores, asked)
    writes = [stores.reservations.record(claimed, placing(asked)) for _ in range(8)]
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert sum(isinstance(result, Reservation) for result in results) == 1
    assert sum(isinstance(result, Stale) for result in results) == 7


async def test_an_operation_makes_the_turn_in_flight_stale(stores: Stores, user: User) -> None:
    """Nothing is decided without having seen what the user asked for in the meantime."""
    asked = await submit(stores, make_reservation(user))
    claimed = await claim(stores, asked)
    await stores.operations.request(OPERATION, asked, OperationKind.CANCEL, NOON)
    with pytest.raises(Stale):
        await stores.reservations.record(claimed, placing(asked))
    (operation,) = (await claim(stores, asked)).operations
    assert (operation.operation_id, operation.kind) == (OPERATION, OperationKind.CANCEL)


async def test_a_record_settles_its_operations(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    await stores.operations.request(OPERATION, asked, OperationKind.CANCEL, NOON)
    claimed = await claim(stores, asked)
    done = OperationOutcome(OPERATION, OperationStatus.DONE)
    await stores.reservations.record(claimed, cancelling(claimed.reservation, done))
    stored = await stores.operations.get(OPERATION, user.user_id)
    assert (stored.status, stored.finished_at) == (OperationStatus.DONE, NOON)
    assert (await claim(stores, asked)).operations == ()


async def test_an_operation_comes_with_its_terms(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    terms = Terms(timedelta(hours=1.5), NOON + timedelta(seconds=3))
    await stores.operations.request(OPERATION, asked, OperationKind.EXTEND, NOON, terms=terms)
    (operation,) = (await claim(stores, asked)).operations
    assert operation == Operation(OPERATION, OperationKind.EXTEND, NOON, terms=terms)


async def test_an_operation_that_is_requested_twice_is_one(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    for length in (1, 2):
        terms = Terms(timedelta(hours=length))
        await stores.operations.request(OPERATION, asked, OperationKind.EXTEND, NOON, terms=terms)
    claimed = await claim(stores, asked)
    assert [operation.terms for operation in claimed.operations] == [Terms(timedelta(hours=1))]
    assert claimed.reservation.version == asked.version + 1


MARKS = {
    "warned_minutes": 15,
    "told_notices": (fact("words", words="Soon."),),
    "extension_error": fact("words", words="Too long."),
    "oom_count": 2,
    "last_oom_at": NOON,
    "progress": fact("image_fetching", image="dev:1"),
    "progress_at": NOON + timedelta(microseconds=1),
    "stale_since": NOON - timedelta(minutes=1),
    "driven_at": NOON,
}


async def test_a_note_is_kept_and_is_no_change(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    noted = change(asked, detail="Pulling.", **MARKS)
    assert await stores.reservations.note(await claim(stores, asked), noted) == noted
    assert await stores.reservations.get(asked.id) == noted
    assert len(await stores.reservations.list_events(asked.id, 0)) == 1


async def test_what_was_noted_stays_with_a_record(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    claimed = await claim(stores, asked)
    recorded = await stores.reservations.record(claimed, placing(change(asked, **MARKS)))
    stored = await stores.reservations.get(asked.id)
    assert recorded == change(stored, last_updated=recorded.state.last_updated)
    of_an_earlier_start = {"progress": None, "progress_at": None}
    assert {
        name: getattr(getattr(stored, PART_OF[name]), name) for name in MARKS
    } == MARKS | of_an_earlier_start


async def test_a_record_writes_all_parts_or_none(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    claimed = await claim(stores, asked)
    spoilt = placing(change(asked, oom_count=None))
    with pytest.raises(asyncpg.NotNullViolationError):
        await stores.reservations.record(claimed, spoilt)
    only_memory = Record(
        asked, change(asked, oom_count=None), Event(EventKind.WARNING, fact("words", words="Look out."), NOON)
    )
    with pytest.raises(asyncpg.NotNullViolationError):
        await stores.reservations.record(claimed, only_memory)
    assert await stores.reservations.get(asked.id) == asked
    assert len(await stores.reservations.list_events(asked.id, 0)) == 1


async def test_a_record_writes_what_the_plan_had_decided_before(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    claimed = await claim(stores, asked)
    decided = change(asked, outcome=Outcome.FAILED, exit_code=3, warned_minutes=5)
    after = end(decided, Status.CANCELLED, Reason.CANCELLED_BY_USER, NOON)
    await stores.reservations.record(
        claimed,
        Record(
            decided, after, Event(EventKind.CANCELLED, fact("words", words="Over."), NOON, after.state.reason)
        ),
    )
    stored = await stores.reservations.get(asked.id)
    assert (stored.state.outcome, stored.state.exit_code) == (Outcome.FAILED, 3)
    assert stored.memory.warned_minutes == 5


@pytest.mark.parametrize("late", [{"version": 99}, {"name": "of another process"}], ids=["version", "lease"])
async def test_a_late_note_is_rejected(stores: Stores, user: User, late: dict[str, object]) -> None:
    asked = await submit(stores, make_reservation(user))
    claimed = await claim(stores, asked)
    if "name" in late:
        claimed = replace(claimed, lease=replace(claimed.lease, token=str(uuid.uuid4())))
    with pytest.raises(Stale):
        await stores.reservations.note(claimed, change(asked, detail="Late.", version=late.get("version", 1)))
    assert await stores.reservations.get(asked.id) == asked


async def test_an_operation_is_its_owners_alone(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    await stores.operations.request(OPERATION, asked, OperationKind.CANCEL, NOON)
    stranger = await stores.users.upsert("eve")
    with pytest.raises(NotFound):
        await stores.operations.get(OPERATION, stranger.user_id)


async def test_the_next_turn_is_due_at_its_time_and_not_while_leased(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    assert await stores.turns.list_due(Kind.RESERVATION, NOON, 10) == (asked.id,)
    claimed = await claim(stores, asked)
    assert await stores.turns.list_due(Kind.RESERVATION, NOON, 10) == ()
    later = NOON + timedelta(hours=1)
    await stores.turns.end(claimed.lease, later)
    assert await stores.turns.list_due(Kind.RESERVATION, NOON, 10) == ()
    assert await stores.turns.find_next(Kind.RESERVATION, after=NOON) == later
    assert await stores.turns.list_due(Kind.RESERVATION, later, 10) == (asked.id,)


async def test_a_release_does_not_undo_the_turn_that_a_change_asked_for(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    claimed = await claim(stores, asked)
    await stores.operations.request(OPERATION, asked, OperationKind.CANCEL, NOON)
    await stores.turns.end(claimed.lease, NOON + timedelta(hours=5))
    assert await stores.turns.list_due(Kind.RESERVATION, NOON, 10) == (asked.id,)


async def test_a_cleaned_reservation_is_never_due_again(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    claimed = await claim(stores, asked)
    ended = await stores.reservations.record(claimed, cancelling(asked))
    event = Event(EventKind.CLEANED, fact("words", words="Clean."), NOON)
    await stores.reservations.record(claimed, Record(ended, clean(ended, NOON), event))
    await stores.turns.end(claimed.lease, None)
    assert await stores.turns.find_next(Kind.RESERVATION, after=NOON - timedelta(days=1)) is None


async def test_an_active_reservation_keeps_its_address_and_host_keys(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    claimed = await claim(stores, asked)
    placed = await stores.reservations.record(claimed, placing(asked))
    member = Member(NodeName("t4-0"), SshAddress("127.0.0.1", 30022), ("ssh-ed25519 AAAA",))
    after = activate(placed, (member,), NOON)
    await stores.reservations.record(
        claimed, Record(placed, after, Event(EventKind.ACTIVE, fact("words", words="Ready."), NOON))
    )
    stored = await stores.reservations.get(asked.id)
    assert stored.address == SshAddress("127.0.0.1", 30022)
    assert stored.host_keys == ("ssh-ed25519 AAAA",)
    assert stored.state.expires_at == NOON + timedelta(hours=1)


async def test_a_gang_keeps_the_node_address_and_host_keys_of_every_member(
    stores: Stores, user: User
) -> None:
    asked = await submit(stores, make_reservation(user, gpu_type="h100", gpu_count=24, node_count=3))
    claimed = await claim(stores, asked)
    nodes = tuple(NodeName(f"h100-{rank}") for rank in range(3))
    event = Event(EventKind.PLACED, fact("words", words="Placed."), NOON)
    placed = await stores.reservations.record(claimed, Record(asked, place(asked, nodes, NOON), event))
    stored = await stores.reservations.get(asked.id)
    assert (stored.spec.node_count, stored.location.members) == (3, tuple(Member(node) for node in nodes))
    members = tuple(
        Member(node, SshAddress("10.0.0.1", 30000 + rank), (f"ssh-ed25519 A{rank}",))
        for rank, node in enumerate(nodes)
    )
    event = Event(EventKind.ACTIVE, fact("words", words="Ready."), NOON)
    active = Record(placed, activate(placed, members, NOON), event)
    await stores.reservations.record(claimed, active)
    (listed,) = (await stores.reservations.list_page(ListQuery(user.user_id))).reservations
    assert (await stores.reservations.get(asked.id)).location.members == listed.location.members == members
    assert (listed.node, listed.address, listed.host_keys) == (
        members[0].node,
        members[0].address,
        members[0].host_keys,
    )


async def test_the_third_defect_buries_reservation_and_message(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    claimed = await claim(stores, asked)
    await stores.turns.end(claimed.lease, NOON, defects=1)
    claimed = await claim(stores, asked)
    assert claimed.lease.defects == 1
    (message,) = await stores.messages.of_reservations.read(10)
    record = end_with_defect(claimed.reservation, NOON)
    await stores.reservations.bury(claimed, record, "It broke.", [message.message_id])
    stored = await stores.reservations.get(asked.id)
    assert (stored.state.status, stored.state.reason) == (Status.FAILED, Reason.INTERNAL_ERROR)
    assert await stores.messages.of_reservations.count() == 0
    dead = await stores.database.fetch_value("SELECT count(*) FROM pgmq.q_gpu_reservations_dead")
    assert dead == 1


async def test_everybody_who_waits_is_listed_by_type_in_the_order_of_coming(
    stores: Stores, user: User
) -> None:
    other = await stores.users.upsert("eve")
    late = await submit(stores, make_reservation(user, created_at=NOON + timedelta(minutes=1)))
    early = await submit(stores, make_reservation(other))
    another_type = await submit(stores, make_reservation(user, gpu_type="a100"))
    placed = await submit(stores, make_reservation(user))
    await stores.reservations.record(await claim(stores, placed), placing(placed))
    ended = await submit(stores, make_reservation(other))
    await stores.reservations.record(await claim(stores, ended), cancelling(ended))
    assert await stores.reservations.list_waiting() == (another_type, early, late)


async def test_a_page_holds_ones_own_newest_first(stores: Stores, user: User) -> None:
    times = [NOON + timedelta(minutes=minute) for minute in range(5)]
    mine = [await submit(stores, make_reservation(user, created_at=time)) for time in times]
    await submit(stores, make_reservation(await stores.users.upsert("eve")))
    page = await stores.reservations.list_page(ListQuery(user.user_id, limit=2, offset=1))
    assert page.total == 5
    assert [reservation.id for reservation in page.reservations] == [mine[3].id, mine[2].id]
    ended = await stores.reservations.list_page(ListQuery(user.user_id, statuses=(Status.EXPIRED,)))
    assert (ended.total, ended.reservations) == (0, ())


@pytest.mark.parametrize("text", ["whole", "prefix", "name"])
async def test_a_reservation_is_found_by_id_prefix_and_name(stores: Stores, user: User, text: str) -> None:
    mine = await submit(stores, make_reservation(user, name="my-run"))
    spelled = {"whole": mine.id, "prefix": mine.id[:4], "name": "my-run"}[text]
    assert [found.id for found in await stores.reservations.list_matching(user.user_id, spelled)] == [mine.id]
    stranger = await stores.users.upsert("eve")
    assert await stores.reservations.list_matching(stranger.user_id, spelled) == ()


@pytest.mark.parametrize("text", ["%", "____", "nonsense", "'; DROP TABLE reservations; --"])
async def test_odd_text_finds_nothing(stores: Stores, user: User, text: str) -> None:
    await submit(stores, make_reservation(user))
    assert await stores.reservations.list_matching(user.user_id, text) == ()


async def test_a_turn_knows_which_wishes_are_an_admins(stores: Stores, user: User) -> None:
    reservation = await submit(stores, make_reservation(user))
    own, for_them = (OperationId(str(uuid.uuid4())) for _ in range(2))
    cancel = OperationKind.CANCEL
    await stores.operations.request(own, reservation, cancel, NOON)
    later = NOON + timedelta(seconds=1)
    await stores.operations.request(for_them, reservation, cancel, later, is_by_admin=True)
    claim = await stores.reservations.claim(reservation.id, timedelta(minutes=1))
    assert claim is not None
    assert claim.operations == (
        Operation(own, cancel, NOON),
        Operation(for_them, cancel, later, is_by_admin=True),
    )
