"""Turns: who comes when, whoever asks meanwhile, and what a dead process leaves behind."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from gpudev.app.turns.engine import Engine, Hands, Observed
from gpudev.bootstrap.foundation import Stores
from gpudev.domain.errors import ClusterUnavailable, Unavailable
from gpudev.domain.plans.turn import LookAgain
from gpudev.ports.reservations import Claim, HomeWish
from gpudev.ports.turns import Kind, Lease
from gpudev.ports.users import User
from gpudev.texts.vocabulary import OperationKind
from tests.support.reservations import NOON, make_reservation, open_test_stores, submit
from tests.support.simulation import MovableClock

pytestmark = pytest.mark.anyio

LEASE, SECOND, HOUR = timedelta(seconds=30), timedelta(seconds=1), timedelta(hours=1)


async def claim(stores: Stores, key: str) -> Claim:
    claimed = await stores.reservations.claim(key, LEASE)  # type: ignore[arg-type]  # any key
    assert claimed is not None
    return claimed


async def list_due(stores: Stores) -> tuple[str, ...]:
    return await stores.turns.list_due(Kind.RESERVATION, NOON, 10)


async def test_everything_that_is_made_has_a_turn(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user), HomeWish("work", str(uuid.uuid4())))  # type: ignore[arg-type]
    assert await stores.turns.is_known(Kind.RESERVATION, asked.id)
    assert await stores.turns.is_known(Kind.DISK, asked.spec.disk_id or "")
    assert not await stores.turns.is_known(Kind.DISK, asked.id)


async def test_a_request_during_a_turn_is_not_settled_by_its_end(stores: Stores, user: User) -> None:
    asked = await submit(stores, make_reservation(user))
    first = await claim(stores, asked.id)
    operation = uuid.uuid4()
    await stores.operations.request(str(operation), asked, OperationKind.CANCEL, NOON)  # type: ignore[arg-type]
    await stores.turns.end(first.lease, None)
    assert await list_due(stores) == (asked.id,)
    second = await claim(stores, asked.id)
    assert second.lease.asked == first.lease.asked + 1
    await stores.turns.end(second.lease, None)
    assert await list_due(stores) == ()


async def test_an_end_by_a_process_that_lost_its_lease_changes_nothing(
    stores: Stores, user: User, database: str
) -> None:
    asked = await submit(stores, make_reservation(user))
    late = await stores.reservations.claim(asked.id, -SECOND)
    assert late is not None
    async with open_test_stores(database) as others:
        theirs = await claim(others, asked.id)
        await stores.turns.end(late.lease, None)
        assert await stores.reservations.claim(asked.id, LEASE) is None
        await others.turns.end(theirs.lease, NOON + HOUR)
    assert await stores.turns.find_next(Kind.RESERVATION, after=NOON) == NOON + HOUR


async def test_what_was_asked_for_and_is_leased_is_due_when_the_lease_runs_out(
    stores: Stores, user: User
) -> None:
    asked = await submit(stores, make_reservation(user))
    await claim(stores, asked.id)
    assert await list_due(stores) == ()
    assert await stores.turns.find_next(Kind.RESERVATION, after=NOON) is not None


async def test_a_successor_looks_at_what_was_to_come_soon_and_leaves_the_rest(
    stores: Stores, user: User
) -> None:
    soon, late = [await submit(stores, make_reservation(user, name=name)) for name in ("soon", "late")]
    for one, after in ((soon, SECOND), (late, HOUR)):
        await stores.turns.end((await claim(stores, one.id)).lease, NOON + after)
    await stores.turns.take_over(Kind.RESERVATION, NOON, within=timedelta(minutes=5))
    assert await list_due(stores) == (soon.id,)
    await stores.turns.take_over(Kind.RESERVATION, NOON)
    assert set(await list_due(stores)) == {soon.id, late.id}


class Patient:
    """The smallest work there is: it looks at its item, and again an hour later."""

    kind = Kind.RESERVATION

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self.trouble: Exception | None = None
        self.silence: Unavailable | None = None
        self.given_up: list[str] = []

    async def claim(self, key: str) -> Claim | None:
        return await self._stores.reservations.claim(key, LEASE)  # type: ignore[arg-type]

    async def observe(self, claim: Claim, before: Lease | None) -> Observed[Lease]:
        if self.trouble is not None:
            raise self.trouble
        return Observed(claim.lease, self.silence)

    def plan(self, seen: Lease) -> tuple[LookAgain, ...]:
        return (
            (LookAgain(NOON + HOUR), LookAgain(NOON + 3 * SECOND))
            if self.silence
            else (LookAgain(NOON + HOUR),)
        )

    async def execute(self, claim: Claim, action: LookAgain) -> Claim:
        return claim

    def find_next_turn(self, claim: Claim, looks: tuple[object, ...]) -> object:
        return min(looks)  # type: ignore[type-var]

    async def note_refusal(self, claim: Claim, error: Unavailable) -> None:
        return None

    async def give_up(self, claim: Claim, error: str, message_ids: tuple[int, ...]) -> bool:
        self.given_up.append(error)
        await self._stores.turns.end(claim.lease, None)
        return True


@pytest.fixture
def work(stores: Stores) -> Patient:
    return Patient(stores)


@pytest.fixture
def engine(stores: Stores, work: Patient) -> Engine[Claim, Lease, LookAgain]:
    return Engine(work, Hands(stores.turns, stores.messages.of_reservations, MovableClock()))  # type: ignore[arg-type]


async def test_a_turn_that_went_well_archives_its_message_and_sets_the_next(
    stores: Stores, user: User, engine: Engine[Claim, Lease, LookAgain]
) -> None:
    asked = await submit(stores, make_reservation(user))
    await engine.read_messages()
    await engine.turn(asked.id)
    assert await stores.messages.of_reservations.count() == 0
    assert await stores.turns.find_next(Kind.RESERVATION, after=NOON) == NOON + HOUR


async def test_a_silent_part_is_asked_again_soon_and_nothing_with_a_time_waits_for_it(
    stores: Stores, user: User, engine: Engine[Claim, Lease, LookAgain], work: Patient
) -> None:
    asked = await submit(stores, make_reservation(user))
    work.silence = ClusterUnavailable("words", words="It does not answer.")
    with pytest.raises(ClusterUnavailable):
        await engine.turn(asked.id)
    assert await stores.turns.find_next(Kind.RESERVATION, after=NOON) == NOON + 3 * SECOND
    assert await stores.messages.of_reservations.count() == 1, "its message comes back"


async def test_an_unavailable_part_is_never_counted_and_the_third_defect_is_the_last(
    stores: Stores, user: User, engine: Engine[Claim, Lease, LookAgain], work: Patient
) -> None:
    asked = await submit(stores, make_reservation(user))
    for trouble, defects in (
        (ClusterUnavailable("words", words="Away."), 0),
        (KeyError("a"), 1),
        (ClusterUnavailable("words", words="Away."), 1),
    ):
        work.trouble = trouble
        with pytest.raises(type(trouble)):
            await engine.turn(asked.id)
        claimed = await claim(stores, asked.id)
        assert claimed.lease.defects == defects
        await stores.turns.end(claimed.lease, NOON, defects=defects)
    work.trouble = KeyError("a")
    for _ in range(2):
        with pytest.raises(KeyError):
            await engine.turn(asked.id)
    assert work.given_up == ["KeyError: 'a'"]


@pytest.mark.parametrize("has_turn", [False, True], ids=["never there", "its row was lost"])
async def test_messages_about_what_does_not_exist_become_dead_letters(
    stores: Stores, engine: Engine[Claim, Lease, LookAgain], *, has_turn: bool
) -> None:
    nobody = str(uuid.uuid4())
    if has_turn:
        await stores.database.execute("INSERT INTO turns (kind, key) VALUES ('reservation', $1)", nobody)
    query = "SELECT pgmq.send('gpu_reservations', jsonb_build_object('reservation_id', $1::text))"
    await stores.database.execute(query, nobody)
    await engine.read_messages()
    await engine.turn(nobody)
    assert await stores.messages.of_reservations.count() == 0
    (letter,) = await stores.messages.dead_letters.list_all(10)
    assert nobody in letter.message
