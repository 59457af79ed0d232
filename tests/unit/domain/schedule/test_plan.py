"""The kept plan: the earliest slot for everybody, promises that move earlier only, no room given twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpudev.domain.names import NodeName
from gpudev.domain.schedule.grid import FOREVER, Ask, Slot
from gpudev.domain.schedule.plan import Plan
from gpudev.domain.schedule.room import Limit
from tests.support.budgets import QUICK, THOROUGH
from tests.support.plan_events import (
    ORIGIN,
    Cancel,
    Release,
    Story,
    Submit,
    Told,
    make_oracle,
    make_plan,
    stories,
)

A, B, C = NodeName("a"), NodeName("b"), NodeName("c")
HOUR = 12

every_story = given(story=st.one_of(stories(), stories(hour=4)))
"""Half of them by a coarse clock: everything begins and ends on the hour."""


def ask(number: int, slots: int = 1, length: int = HOUR, node_count: int = 1, not_before: int = 0) -> Ask:
    return Ask(f"{number}", (number,), slots, length, node_count, not_before)


def plan_of(*sizes: int, lag: int = 0) -> Plan:
    return Plan(dict(zip((A, B, C), sizes, strict=False)), ORIGIN, longest=300, lag=lag)


def starts(plan: Plan) -> dict[str, int]:
    return {one.id: slot.start - ORIGIN for one, slot in plan.items()}


class TestFitting:
    def test_an_empty_node_takes_it_now(self) -> None:
        assert plan_of(8).add(ask(1)) == Slot(ORIGIN, ORIGIN + HOUR, (A,))

    def test_of_nodes_with_room_at_the_same_time_the_fullest_takes_it(self) -> None:
        plan = plan_of(8, 8)
        plan.hold(B, 6, ORIGIN, ORIGIN + HOUR)
        slot = plan.add(ask(1, 2))
        assert slot is not None
        assert slot.nodes == (B,)

    def test_the_whole_length_must_fit_before_a_later_promise(self) -> None:
        plan = plan_of(8)
        plan.hold(A, 4, ORIGIN, ORIGIN + HOUR)
        plan.add(ask(1, 8))
        assert plan.add(ask(2, 4, HOUR)) == Slot(ORIGIN, ORIGIN + HOUR, (A,)), "a later one may go first"
        assert plan.add(ask(3, 1, HOUR + 1)) == Slot(ORIGIN + 2 * HOUR, ORIGIN + 3 * HOUR + 1, (A,))

    def test_what_no_node_can_hold_gets_nothing(self) -> None:
        plan = plan_of(4)
        assert plan.add(ask(1, 8)) is None
        assert list(plan.items()) == []

    def test_who_starts_within_a_step_takes_one_step_more(self) -> None:
        plan = plan_of(8, lag=1)
        assert plan.add(ask(1)) == Slot(ORIGIN, ORIGIN + HOUR + 1, (A,))

    def test_a_hole_that_is_too_short_from_the_present_moment_is_left(self) -> None:
        plan = plan_of(8, lag=1)
        plan.hold(A, 8, ORIGIN + HOUR, ORIGIN + 2 * HOUR)
        assert plan.add(ask(1)) == Slot(ORIGIN + 2 * HOUR, ORIGIN + 3 * HOUR, (A,))

    def test_a_gang_takes_the_first_time_at_which_all_of_its_nodes_are_free(self) -> None:
        plan = plan_of(8, 8, 8)
        plan.hold(A, 1, ORIGIN, ORIGIN + 10)
        plan.hold(B, 8, ORIGIN, ORIGIN + 5)
        slot = plan.add(ask(1, 8, node_count=2))
        assert slot == Slot(ORIGIN + 5, ORIGIN + 5 + HOUR, (B, C))

    def test_a_gang_of_more_nodes_than_there_are_gets_nothing(self) -> None:
        assert plan_of(8).add(ask(1, 8, node_count=2)) is None

    def test_a_booking_starts_at_its_time_on_the_fullest_node(self) -> None:
        plan = plan_of(8, 8)
        plan.hold(B, 4, ORIGIN, ORIGIN + 100)
        assert plan.add(ask(1, 4, not_before=ORIGIN + 7)) == Slot(ORIGIN + 7, ORIGIN + 7 + HOUR, (B,))

    def test_a_booking_where_there_is_no_room_starts_as_soon_after_as_it_can(self) -> None:
        plan = plan_of(8)
        plan.hold(A, 8, ORIGIN + 5, ORIGIN + 20)
        assert plan.find(ask(1, 4, not_before=ORIGIN + 7)) == Slot(ORIGIN + 20, ORIGIN + 20 + HOUR, (A,))


class TestCompressing:
    def test_early_release_makes_nobody_later(self) -> None:
        """Planned anew, the second would move from one hour to two."""
        plan = plan_of(8)
        plan.hold(A, 1, ORIGIN, ORIGIN + 4 * HOUR)
        plan.hold(A, 4, ORIGIN, ORIGIN + HOUR)
        plan.add(ask(1, 8, HOUR))
        plan.add(ask(2, 4, 2 * HOUR))
        assert starts(plan) == {"1": 4 * HOUR, "2": HOUR}
        plan.give_back(A, 1, ORIGIN, ORIGIN + 4 * HOUR)
        assert plan.compress() == ("1", "2")
        assert starts(plan) == {"1": 3 * HOUR, "2": 0}

    def test_one_that_waits_moves_into_the_room_before_its_own(self) -> None:
        plan = plan_of(8)
        plan.hold(A, 8, ORIGIN, ORIGIN + 3)
        plan.add(ask(1, 8))
        plan.give_back(A, 8, ORIGIN + 2, ORIGIN + 3)
        assert plan.compress() == ("1",)
        assert starts(plan) == {"1": 2}

    def test_freed_room_is_offered_in_order(self) -> None:
        plan = plan_of(8)
        for number in (1, 2, 3):
            plan.add(ask(number, 8))
        plan.remove("1")
        assert plan.compress() == ("2", "3")
        assert starts(plan) == {"2": 0, "3": HOUR}

    def test_nothing_moves_where_nothing_came_back(self) -> None:
        plan = plan_of(8)
        plan.add(ask(1, 8))
        plan.add(ask(2, 8))
        assert plan.compress() == ()

    def test_a_booking_stays_at_its_time(self) -> None:
        plan = plan_of(8)
        plan.add(ask(1, 8))
        plan.add(ask(2, 8, not_before=ORIGIN + 20))
        plan.remove("1")
        assert plan.compress() == ()


class TestKeeping:
    def test_a_promise_is_kept_where_it_was_made(self) -> None:
        plan = plan_of(8, 8)
        assert plan.keep(ask(1, 8), Slot(ORIGIN + 30, ORIGIN + 40, (B,)))
        assert plan.find_slot("1") == Slot(ORIGIN + 30, ORIGIN + 40, (B,))

    @pytest.mark.parametrize("node", [NodeName("lost"), A])
    def test_a_promise_on_a_lost_or_a_full_node_is_not(self, node: NodeName) -> None:
        plan = plan_of(8)
        plan.hold(A, 1, ORIGIN, ORIGIN + 31)
        assert not plan.keep(ask(1, 8), Slot(ORIGIN + 30, ORIGIN + 40, (node,)))
        assert plan.find_slot("1") is None
        assert plan.free_at(A, ORIGIN + 30) == 7

    def test_room_can_be_asked_for_from_the_next_step_on(self) -> None:
        """For one whose time has come, and whose room is about to be freed."""
        plan = plan_of(8)
        plan.hold(A, 8, ORIGIN, ORIGIN + 1)
        assert plan.keep(ask(1, 8), Slot(ORIGIN, ORIGIN + HOUR, (A,)), from_step=ORIGIN + 1)

    @pytest.mark.parametrize("kept", [ask(1, 8), ask(1, 8, node_count=2), ask(1, 8, not_before=ORIGIN + 20)])
    def test_what_was_promised_elsewhere_moves_into_room_that_is_there_by_now(self, kept: Ask) -> None:
        """A plan that is made again knows nothing of the room that came back before it was made."""
        plan = plan_of(8, 8)
        plan.keep(kept, Slot(ORIGIN + 30, ORIGIN + 30 + HOUR, (A, B)[: kept.node_count]))
        assert plan.compress() == ("1",)
        assert starts(plan) == {"1": max(0, kept.not_before - ORIGIN)}

    def test_it_is_known_how_long_a_reservation_can_stay(self) -> None:
        plan = plan_of(8)
        plan.hold(A, 4, ORIGIN, ORIGIN + HOUR)
        plan.add(ask(1, 8))
        plan.remove("1")
        plan.keep(ask(1, 8), Slot(ORIGIN + 20, ORIGIN + 30, (A,)))
        assert plan.stays_free_until(A, 4, ORIGIN + HOUR) == ORIGIN + 20
        assert plan.stays_free_until(A, 4, ORIGIN + 20) == ORIGIN + 20


class TestRestrictions:
    def test_owner_at_the_limit_waits_for_what_they_have_themselves(self) -> None:
        plan = Plan({A: 8, B: 8}, ORIGIN, longest=300, limits={"ada": 4})
        plan.hold(A, 2, ORIGIN, ORIGIN + 10)
        plan.charge("ada", 2, ORIGIN, ORIGIN + 10)
        more = Ask("1", (1,), 4, HOUR, owner="ada")
        assert plan.add(more) == Slot(ORIGIN + 10, ORIGIN + 10 + HOUR, (A,))
        assert plan.add(Ask("2", (2,), 4, HOUR, owner="bob")) == Slot(ORIGIN, ORIGIN + HOUR, (A,))
        assert plan.add(Ask("3", (3,), 2, 10, owner="ada")) == Slot(ORIGIN, ORIGIN + 10, (A,))

    def test_more_than_the_limit_never_starts(self) -> None:
        plan = Plan({A: 8, B: 8}, ORIGIN, longest=300, limits={"ada": 8})
        assert plan.add(Ask("1", (1,), 8, HOUR, node_count=2, owner="ada")) is None

    def test_request_for_some_nodes_waits_for_those(self) -> None:
        plan = plan_of(8, 8)
        plan.hold(B, 8, ORIGIN, ORIGIN + 10)
        only_b = Ask("1", (1,), 4, HOUR, only_on=frozenset({B}))
        assert plan.add(only_b) == Slot(ORIGIN + 10, ORIGIN + 10 + HOUR, (B,))

    def test_promise_beyond_a_limit_that_was_lowered_is_not_kept(self) -> None:
        plan = Plan({A: 8}, ORIGIN, longest=300, limits={"ada": 2})
        assert not plan.keep(Ask("1", (1,), 4, HOUR, owner="ada"), Slot(ORIGIN + 5, ORIGIN + 9, (A,)))

    def test_it_is_known_how_long_an_owner_may_have_more(self) -> None:
        plan = Plan({A: 8}, ORIGIN, longest=300, limits={"ada": 4})
        plan.keep(Ask("1", (1,), 4, HOUR, owner="ada"), Slot(ORIGIN + 5, ORIGIN + 5 + HOUR, (A,)))
        assert plan.allowed_until("ada", 2, ORIGIN) == ORIGIN + 5
        assert plan.allowed_until("bob", 2, ORIGIN) == FOREVER
        assert plan.allowed_until("ada", 5, ORIGIN) == ORIGIN


class TestLongLimit:
    """What ends within 20 steps does not count."""

    def test_short_request_does_not_count_and_is_not_held_back(self) -> None:
        plan = self._plan()
        plan.charge("ada", 4, ORIGIN, ORIGIN + 100)
        assert plan.add(Ask("1", (1,), 8, 20, owner="ada")) == Slot(ORIGIN, ORIGIN + 20, (A,))
        assert plan.find_obstacle(Ask("2", (2,), 8, 20, owner="ada"), ORIGIN) is None

    def test_long_request_waits_until_the_one_before_it_counts_no_longer(self) -> None:
        plan = self._plan()
        assert plan.add(Ask("1", (1,), 4, 100, owner="ada")) == Slot(ORIGIN, ORIGIN + 100, (A,))
        second = Ask("2", (2,), 1, 100, owner="ada")
        assert plan.add(second) == Slot(ORIGIN + 80, ORIGIN + 180, (A,))
        assert plan.find_obstacle(second, ORIGIN + 79) == Limit(4, tail=20)
        assert plan.add(Ask("3", (3,), 8, 100, owner="bob")) == Slot(ORIGIN, ORIGIN + 100, (B,))

    def test_what_is_given_back_early_makes_room_for_the_next(self) -> None:
        plan = self._plan()
        plan.hold(A, 4, ORIGIN, ORIGIN + 100)
        plan.charge("ada", 4, ORIGIN, ORIGIN + 100)
        plan.add(Ask("1", (1,), 4, 100, owner="ada"))
        plan.advance(ORIGIN + 5)
        plan.give_back(A, 4, ORIGIN + 5, ORIGIN + 100)
        plan.charge("ada", -4, ORIGIN + 5, ORIGIN + 100)
        assert plan.compress() == ("1",)
        assert plan.find_slot("1") == Slot(ORIGIN + 5, ORIGIN + 105, (A,))

    def test_more_than_the_limit_starts_where_its_owner_has_nothing_long(self) -> None:
        plan = self._plan()
        plan.add(Ask("1", (1,), 1, 50, owner="ada"))
        assert plan.add(Ask("2", (2,), 8, 100, node_count=2, owner="ada")) == Slot(
            ORIGIN + 50, ORIGIN + 150, (A, B)
        )

    def test_promise_beyond_a_limit_that_shrank_is_kept(self) -> None:
        plan = self._plan()
        plan.charge("ada", 4, ORIGIN, ORIGIN + 100)
        assert plan.keep(Ask("1", (1,), 4, 100, owner="ada"), Slot(ORIGIN + 5, ORIGIN + 105, (A,)))

    def test_an_extension_within_the_tail_is_always_allowed(self) -> None:
        plan = self._plan()
        plan.charge("ada", 4, ORIGIN, ORIGIN + 100)
        assert plan.allowed_until("ada", 1, ORIGIN) == ORIGIN + 20
        assert plan.allowed_until("ada", 1, ORIGIN + 80) == FOREVER

    @staticmethod
    def _plan() -> Plan:
        return Plan({A: 8, B: 8}, ORIGIN, longest=300, long_limits={"ada": Limit(4, tail=20)})


class TestTimePasses:
    def test_room_that_was_free_is_free_from_now_on(self) -> None:
        plan = plan_of(8, 8)
        plan.hold(A, 8, ORIGIN, ORIGIN + 30)
        plan.add(ask(1, 8))
        plan.advance(ORIGIN + 5, lag=1)
        assert plan.add(ask(2, 8)) == Slot(ORIGIN + HOUR, ORIGIN + 2 * HOUR, (B,))
        plan.advance(ORIGIN + 40)
        assert plan.add(ask(3, 8)) == Slot(ORIGIN + 40, ORIGIN + 40 + HOUR, (A,))


@settings(QUICK, max_examples=150)
@every_story
def test_plan_is_that_of_the_oracle(story: Story) -> None:
    """Starts and nodes, after everything that happens."""
    fast, slow = Told(story, make_plan(story)), Told(story, make_oracle(story))
    for happening in story.happenings:
        assert fast.tell(happening) == slow.tell(happening)
        assert fast.slots() == slow.slots()


@pytest.mark.long
@settings(THOROUGH)
@every_story
def test_plan_is_that_of_the_oracle_in_very_many_cases(story: Story) -> None:
    fast, slow = Told(story, make_plan(story)), Told(story, make_oracle(story))
    for happening in story.happenings:
        assert fast.tell(happening) == slow.tell(happening)
        assert fast.slots() == slow.slots()


@QUICK
@every_story
def test_capacity_is_never_exceeded(story: Story) -> None:
    told = Told(story, make_plan(story))
    for happening in story.happenings:
        told.tell(happening)
    checked = make_oracle(story)
    checked.held = [(hold.node, hold.slots, ORIGIN, hold.until) for hold in told.running]
    checked.charged = [(hold.owner, hold.slots, ORIGIN, hold.until) for hold in told.running]
    checked.asks = {one.ask.id: one.ask for one in story.happenings if isinstance(one, Submit)}
    checked.slots = told.slots()
    assert checked.list_overfull() == []
    assert checked.list_beyond_their_limit() == []


@settings(QUICK, max_examples=100)
@every_story
def test_promises_only_move_earlier_and_a_submit_moves_nobody(story: Story) -> None:
    told = Told(story, make_plan(story))
    for happening in story.happenings:
        before = told.slots()
        moved = told.tell(happening)
        after = told.slots()
        for one, slot in before.items():
            if one not in after:
                assert isinstance(happening, Cancel)
            elif one in moved:
                assert after[one].start < slot.start
                assert isinstance(happening, Cancel | Release)
            else:
                assert after[one] == slot


@QUICK
@every_story
def test_same_story_told_again_gives_the_same_plan(story: Story) -> None:
    first, second = Told(story, make_plan(story)), Told(story, make_plan(story))
    for happening in story.happenings:
        first.tell(happening)
    for happening in story.happenings:
        second.tell(happening)
    assert first.slots() == second.slots()


@QUICK
@every_story
def test_plan_that_is_kept_slot_by_slot_goes_on_as_the_one_it_came_from(story: Story) -> None:
    """What is stored is enough: a plan made again from its slots does the same from then on."""
    *first, last = story.happenings
    told = Told(story, make_plan(story))
    for happening in first:
        told.tell(happening)
    again = keep_again(story, told, told.slots())
    told.tell(last)
    again.tell(last)
    assert again.slots() == told.slots()


@QUICK
@every_story
def test_plan_that_is_kept_after_somebody_left_gives_the_room_to_the_same(story: Story) -> None:
    """Whoever makes the plan again sees only what is there now, and not that room came back."""
    told = Told(story, make_plan(story))
    for happening in story.happenings:
        before = told.slots()
        told.tell(happening)
        if isinstance(happening, Cancel | Release):
            kept = {one: slot for one, slot in before.items() if one in told.slots()}
            again = keep_again(story, told, kept)
            again.plan.compress()
            assert again.slots() == told.slots()


def keep_again(story: Story, told: Told, slots: dict[str, Slot]) -> Told:
    """A plan made anew from those who run and from the slots that others were promised."""
    again = Told(replace(story, holds=tuple(told.running), happenings=()), make_plan(story))
    asks = {one.ask.id: one.ask for one in story.happenings if isinstance(one, Submit)}
    again.waiting = list(told.waiting)
    for one, slot in sorted(slots.items(), reverse=True):
        assert isinstance(again.plan, Plan)
        assert again.plan.keep(asks[one], slot)
    return again
