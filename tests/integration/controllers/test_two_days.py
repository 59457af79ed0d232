"""Two days of reservations through every rule of the clock, with the controller killed again and again.

What must have happened is worked out afterwards from what was asked for and when the controller was there,
and compared with the history in the database and with what the people on the servers saw.
"""

from __future__ import annotations

import random
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise

import pytest

from gpudev.bootstrap.foundation import Stores
from gpudev.domain.expiry import WARNING_MINUTES, TimePolicy
from gpudev.domain.names import NodeName, OperationId, ReservationId
from gpudev.domain.operations import Terms
from gpudev.domain.reservation import Event, Reservation
from gpudev.domain.server import ServerPhase
from gpudev.ports.users import User
from gpudev.texts.vocabulary import EventKind, OperationKind, OperationStatus, Reason, Status
from tests.support.reservations import NOON, make_reservation, open_test_stores, submit
from tests.support.simulated_cluster import SimulatedCluster
from tests.support.simulation import Happening, Simulation
from tests.support.words import words_of

pytestmark = pytest.mark.anyio

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
# The safety net finds what hints and times have missed. Here nothing may depend on it.
POLICY = TimePolicy(queue_limit=5 * HOUR, safety_net=1000 * HOUR)
ENDS = (EventKind.EXPIRED, EventKind.CANCELLED, EventKind.FAILED)
STARTING, FAILED = ServerPhase.STARTING, ServerPhase.FAILED
WARNING = re.compile(r"ends in (\d+) minutes, at (.+) UTC\.")


@dataclass
class Story:
    """What is asked of one reservation, and what befalls its server."""

    reservation: Reservation
    fate: str
    extensions: dict[OperationId, timedelta] = field(default_factory=dict)


@dataclass
class Days:
    """The whole of it: users, servers and what they do."""

    simulation: Simulation
    user: User
    chance: random.Random
    stories: dict[ReservationId, Story] = field(default_factory=dict)

    @property
    def stores(self) -> Stores:
        return self.simulation.stores

    @property
    def cluster(self) -> SimulatedCluster:
        return self.simulation.cluster

    def plan(self, moment: datetime, gpu_type: str, fate: str, **changes: object) -> None:
        asked = make_reservation(self.user, gpu_type=gpu_type, created_at=moment, **changes)
        story = Story(asked, fate)
        self.stories[asked.id] = story

        async def come() -> ReservationId:
            await submit(self.stores, asked)
            self.cluster.has_room_changed = True
            return asked.id

        self.simulation.at(moment, come)

    def decide(self, one: ReservationId) -> None:
        """What becomes of a server that has just been made."""
        story, now = self.stories[one], self.simulation.clock.time
        if not story.fate.endswith("start"):
            self._befall(one, timedelta(seconds=self.chance.randint(1, 40)), self.cluster.become_ready)
        match story.fate:
            case "slow start":
                for minutes in range(10, 80, 10):
                    words = f"Pulled {minutes} layers."
                    self._befall(
                        one, minutes * MINUTE, partial(self.cluster.become, phase=STARTING, detail=words)
                    )
            case "broken start":
                self._befall(one, 30 * SECOND, partial(self.cluster.become, phase=FAILED, detail="No image."))
            case "lost":
                self._befall(one, 50 * SECOND + self.chance.random() * HOUR, self.cluster.remove)
            case "out of memory":
                moment = now + 2 * MINUTE
                self._befall(one, 2 * MINUTE, partial(self.cluster.run_out_of_memory, now=moment))
            case "extended":
                self.simulation.at(now + 45 * SECOND, self._extender(story))
            case "cancelled":
                cancel = self._request(story, OperationKind.CANCEL)
                self.simulation.at(now + self.chance.random() * HOUR, cancel)

    def _befall(self, one: ReservationId, after: timedelta, what: Callable[[ReservationId], None]) -> None:
        async def happen() -> ReservationId:
            what(one)
            return one

        self.simulation.at(self.simulation.clock.time + after, happen)

    def _extender(self, story: Story) -> Happening:
        """Once it is active its end is known: ask for more some time before, at or just after it."""

        async def ask() -> None:
            row = await self.stores.reservations.get(story.reservation.id)
            if row.state.status is not Status.ACTIVE or row.state.expires_at is None:
                return
            due = row.state.expires_at + POLICY.grace
            moments = (
                row.state.expires_at - 20 * MINUTE,
                row.state.expires_at - MINUTE,
                row.state.expires_at,
            )
            moment = self.chance.choice([*moments, due - SECOND, due - SECOND / 1000, due, due + SECOND])
            length = self.chance.choice([6 * MINUTE, 40 * MINUTE, 3 * HOUR, 47 * HOUR])
            later = self.chance.choice([None, 3 * SECOND])
            begin = max(moment, self.simulation.clock.time)
            self.simulation.at(begin, self._request(story, OperationKind.EXTEND, length, later))
            if self.chance.random() < 0.5:
                self.simulation.at(begin + 5 * SECOND, self._extender(story))

        return ask

    def _request(
        self,
        story: Story,
        kind: OperationKind,
        length: timedelta | None = None,
        later: timedelta | None = None,
    ) -> Happening:
        async def request() -> ReservationId:
            operation = OperationId(str(uuid.UUID(int=self.chance.getrandbits(128), version=4)))
            if length is not None:
                story.extensions[operation] = length
            row = await self.stores.reservations.get(story.reservation.id)
            now = self.simulation.clock.time
            terms = Terms(length, now + later if later else None)
            await self.stores.operations.request(operation, row, kind, now, terms=terms)
            self.cluster.has_room_changed = True
            return row.id

        return request

    def silence(self, moment: datetime, length: timedelta) -> None:
        def set_silent(*, to: bool) -> Happening:
            async def change() -> None:
                self.cluster.is_silent = to

            return change

        self.simulation.at(moment, set_silent(to=True))
        self.simulation.at(moment + length, set_silent(to=False))


def plan_days(days: Days, count: int) -> None:
    """Requests of all lengths and fates over 40 hours, some for a type without nodes or without admission."""
    fates = ["well"] * 8 + ["extended"] * 8 + ["cancelled", "lost", "out of memory"]
    fates += ["silent start", "slow start", "broken start"]
    lengths = [
        5 * MINUTE,
        6 * MINUTE,
        15 * MINUTE,
        16 * MINUTE,
        30 * MINUTE,
        31 * MINUTE,
        HOUR,
        3 * HOUR,
        12 * HOUR,
    ]
    for number in range(count):
        gpu_type = {0: "b200", 1: "a100"}.get(number % 25, "h100")
        days.plan(
            NOON + days.chance.randrange(26 * 3600) * SECOND,
            gpu_type,
            fates[number % len(fates)],
            gpu_count=days.chance.choice([1, 2, 4, 8]),
            duration=days.chance.choice(lengths),
        )
    for hours in (3, 11, 19):
        days.silence(NOON + hours * HOUR, 10 * MINUTE)


@pytest.mark.parametrize(
    "count, seed",
    [
        pytest.param(30, 1, id="30"),
        pytest.param(60, 2, id="60", marks=pytest.mark.long),
        pytest.param(200, 2, id="200", marks=pytest.mark.long),
    ],
)
async def test_two_days_go_by_the_rules(database: str, count: int, seed: int) -> None:
    chance = random.Random(seed)
    async with open_test_stores(database) as stores:
        cluster = SimulatedCluster("h100", {NodeName(f"h100-{number}"): 8 for number in range(12)})
        simulation = Simulation(
            stores,
            cluster,
            POLICY,
            chance,
            kills_per_action=1 / 120,
            away=(timedelta(), timedelta(), timedelta(), 4 * MINUTE, 50 * MINUTE),
            admitted_types=("h100", "b200"),
        )
        days = Days(simulation, await stores.users.upsert("ada"), chance)
        simulation.on_server = days.decide
        plan_days(days, count)
        await simulation.run_until(NOON + 96 * HOUR)
        assert simulation.kills > count / 10
        assert cluster.servers == {}
        reasons: Counter[Reason | None] = Counter()
        for story in days.stories.values():
            reasons[await check(story, days)] += 1
    expected = {Reason.TIME_IS_UP, Reason.QUEUED_TOO_LONG, Reason.QUEUE_STALLED}
    assert expected <= set(reasons), reasons
    assert Reason.INTERNAL_ERROR not in reasons


async def check(story: Story, days: Days) -> Reason | None:
    row = await days.stores.reservations.get(story.reservation.id)
    events = [stored.event for stored in await days.stores.reservations.list_events(row.id, 0)]
    kinds = Counter(event.kind for event in events)
    assert row.is_cleaned
    assert sum(kinds[kind] for kind in ENDS) == 1, "one end"
    assert kinds[EventKind.CLEANED] == 1
    await check_extensions(story, row, kinds, days)
    if row.state.status is Status.EXPIRED:
        check_end(row, days.simulation)
    if row.state.launched_at is not None:
        check_warnings(row, events, days)
    if row.state.reason is Reason.QUEUED_TOO_LONG:
        assert row.state.ended_at == days.simulation.first_controller_moment(
            row.spec.created_at + POLICY.queue_limit
        )
    return row.state.reason


async def check_extensions(story: Story, row: Reservation, kinds: Counter[EventKind], days: Days) -> None:
    """Each one was granted or refused, never lost, and the end is the sum of those that were granted."""
    granted = timedelta()
    refused = 0
    for operation, length in story.extensions.items():
        stored = await days.stores.operations.get(operation, None)
        assert stored.status is not OperationStatus.REQUESTED
        if stored.status is OperationStatus.DONE:
            granted += length
        else:
            refused += 1
            assert re.search("has ended|at most|longest length", words_of(stored.error))
    if row.state.launched_at is not None:
        assert row.state.expires_at == row.state.launched_at + row.spec.duration + granted
    assert kinds[EventKind.EXTENDED] + refused == len(story.extensions) or kinds[EventKind.EXTENSION_REFUSED]


def check_end(row: Reservation, simulation: Simulation) -> None:
    """Never early, and within a second of its time unless nobody was there to end it."""
    assert row.state.expires_at is not None
    assert row.state.ended_at is not None
    due = row.state.expires_at + POLICY.grace
    latest = simulation.first_controller_moment(due) + SECOND
    # An extension that was asked for by an older client and could not be granted has held it off a moment.
    assert due <= row.state.ended_at <= latest + 3 * SECOND, (due, row.state.ended_at, latest)


def check_warnings(row: Reservation, events: list[Event], days: Days) -> None:
    said = [(event.at, *read_warning(event)) for event in events if event.kind is EventKind.WARNED]
    assert len({(minutes, end) for _, minutes, end in said}) == len(said), "twice for the same end"
    for at, minutes, end in said:
        assert at >= end - minutes * MINUTE, "too early"
    expected = list(expected_warnings(row, events, days.simulation))
    assert [warning[1:] for warning in said] == [warning[1:] for warning in expected]
    for (at, *_), (due, *_) in zip(said, expected, strict=True):
        assert timedelta() <= at - due <= SECOND
    for event in events:
        if event.kind is EventKind.WARNED:
            assert days.cluster.shown[row.id, event.message] <= 1, "shown twice"


def expected_warnings(
    row: Reservation, events: list[Event], simulation: Simulation
) -> Iterator[tuple[datetime, int, datetime]]:
    """For each end that it had: which warnings were due while somebody was there, and when."""
    assert row.state.launched_at is not None
    assert row.state.ended_at is not None
    extended = [event for event in events if event.kind is EventKind.EXTENDED]
    begins = [row.state.launched_at, *(event.at for event in extended)]
    ends = [row.state.launched_at + row.spec.duration, *map(read_end, extended)]
    for (begin, until), end in zip(pairwise([*begins, row.state.ended_at]), ends, strict=True):
        due = {
            minutes: simulation.first_controller_moment(max(begin, end - minutes * MINUTE))
            for minutes in WARNING_MINUTES
            if minutes * MINUTE < end - row.state.launched_at
        }
        for minutes, at in due.items():
            is_overtaken = any(other < minutes and due[other] <= at for other in due)
            if at < until and not is_overtaken:
                yield at, minutes, end.replace(microsecond=0)  # as precise as the words are


def read_warning(event: Event) -> tuple[int, datetime]:
    found = WARNING.search(event.message)
    assert found is not None
    return int(found[1]), read_moment(found[2])


def read_end(event: Event) -> datetime:
    found = re.search(r"it ends at (.+) UTC", event.message)
    assert found is not None
    return read_moment(found[1])


def read_moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
