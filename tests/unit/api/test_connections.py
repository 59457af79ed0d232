"""Which connection makes room for which, and when one has been silent for too long."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis.strategies import integers, lists, sampled_from, tuples

from gpudev.api.connections import NOBODY, Connection, ConnectionLimits, Connections, Phase
from gpudev.domain.errors import TooManyRequests
from tests.support.budgets import QUICK

LIMITS = ConnectionLimits(
    total=4, per_address=3, per_user=2, head_seconds=10, request_seconds=60, idle_seconds=80
)


@dataclass(slots=True)
class World:
    """Connections, a clock that is moved by hand, and the names of those that were dropped."""

    now: float = 0.0
    dropped: list[str] = field(default_factory=list)
    book: Connections = field(init=False)

    def __post_init__(self) -> None:
        self.book = Connections(LIMITS, lambda: self.now)

    def find_room(self, name: str, owner: str | None) -> Connection | None:
        self.now += 0.001
        return self.book.open(lambda: self.dropped.append(name), owner)

    def open(self, name: str, owner: str | None) -> Connection:
        opened = self.find_room(name, owner)
        assert opened is not None
        return opened


def test_the_oldest_silent_connection_of_an_address_makes_room() -> None:
    world = World()
    for name in "abcd":
        world.open(name, "here")
    assert world.dropped == ["a"]


def test_one_that_never_asked_makes_room_before_one_that_did() -> None:
    world = World()
    served = world.open("served", "here")
    world.book.begin_request(served, "here")
    world.book.move(served, Phase.IDLE)
    for name in "abc":
        world.open(name, "here")
    assert world.dropped == ["a"]


def test_a_request_in_progress_is_never_dropped_for_a_new_connection() -> None:
    world = World()
    for name in "abc":
        assert world.book.begin_request(world.open(name, "here"), "here")
    assert world.find_room("d", "here") is None
    assert world.find_room("e", "there") is not None
    assert world.dropped == []


def test_the_total_is_kept_whoever_they_are() -> None:
    world = World()
    for number in range(6):
        world.open(str(number), f"address {number}")
    assert len(world.book) == LIMITS.total
    assert world.dropped == ["0", "1"]


def test_a_user_has_so_many_wherever_they_come_from() -> None:
    world = World()
    for number in range(2):
        world.book.claim(world.open(str(number), f"address {number}"), "ada")
    third = world.open("third", "here")
    with pytest.raises(TooManyRequests):
        world.book.claim(third, "ada")
    world.book.claim(third, "eve")


def test_the_idle_connection_of_a_user_makes_room_for_their_next() -> None:
    world = World()
    first = world.open("first", "here")
    world.book.claim(first, "ada")
    world.book.claim(world.open("second", "here"), "ada")
    world.book.move(first, Phase.IDLE)
    world.book.claim(world.open("third", "here"), "ada")
    assert world.dropped == ["first"]


def test_a_connection_with_a_key_is_not_charged_to_its_address() -> None:
    world = World()
    for name in "ab":
        world.book.claim(world.open(name, "here"), name)
    for name in "cd":
        world.open(name, "here")
    assert world.dropped == []


def test_requests_through_a_proxy_are_charged_to_whom_it_names() -> None:
    world = World()
    through_proxy = [world.open(str(number), NOBODY) for number in range(4)]
    assert [world.book.begin_request(one, "far away") for one in through_proxy] == [True, True, True, False]
    world.book.move(through_proxy[0], Phase.IDLE)
    world.book.release(through_proxy[0])
    assert world.book.begin_request(through_proxy[3], "far away")


@pytest.mark.parametrize("phase, seconds", [(Phase.HEAD, 10), (Phase.REQUEST, 60), (Phase.IDLE, 80)], ids=str)
def test_each_phase_has_its_time(phase: Phase, seconds: float) -> None:
    world = World()
    world.book.move(world.open("slow", "here"), phase)
    world.now += seconds - 0.001
    world.book.drop_overdue()
    assert world.dropped == []
    world.now += 0.002
    world.book.drop_overdue()
    assert world.dropped == ["slow"]
    assert len(world.book) == 0


def test_a_request_with_a_good_key_may_take_as_long_as_it_likes() -> None:
    world = World()
    world.book.claim(world.open("stream", "here"), "ada")
    world.now += 1e6
    world.book.drop_overdue()
    assert world.dropped == []


STEPS = lists(tuples(sampled_from(["open", "close", "ask", "answer", "claim"]), integers(0, 5)), max_size=60)


@QUICK
@given(steps=STEPS)
def test_no_limit_is_ever_exceeded(steps: list[tuple[str, int]]) -> None:
    world = World()
    known: dict[int, Connection] = {}
    for step, number in steps:
        connection = known.get(number)
        match step:
            case "open" if connection is None and (opened := world.find_room(str(number), f"a{number % 2}")):
                known[number] = opened
            case "close" if connection:
                world.book.close(known.pop(number))
            case "ask" if connection:
                world.book.begin_request(connection, connection.owner)
            case "answer" if connection:
                world.book.move(connection, Phase.IDLE)
            case "claim" if connection:
                _try_to_claim(world, connection)
        while world.dropped:
            known.pop(int(world.dropped.pop()))
        assert len(world.book) == len(known) <= LIMITS.total
        owners = [one.owner for one in known.values()]
        assert all(owners.count(owner) <= LIMITS.per_address for owner in owners)
        assert owners.count("ada") <= LIMITS.per_user


def _try_to_claim(world: World, connection: Connection) -> None:
    try:
        world.book.claim(connection, "ada")
    except TooManyRequests:
        assert connection.owner != "ada"
