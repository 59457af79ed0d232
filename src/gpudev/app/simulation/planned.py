"""The kept plan in a simulation: the same `Plan`, the same lengths and the same forecasts as in service.

Its forecasts are measured against simpler ways to tell somebody when they will start.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from typing_extensions import override

from gpudev.app.simulation.queues import LONG_AGO, Queue, Run
from gpudev.domain.errors import QuotaExceeded
from gpudev.domain.expiry import MAX_DURATION, TimePolicy, count_steps
from gpudev.domain.names import NodeName
from gpudev.domain.policy import ALIKE, FairShare, SharingPolicy, weigh_use
from gpudev.domain.queue import LEARNED_FOR, NO_HABITS, Wait, learn_habits
from gpudev.domain.quota import NO_LIMIT, Asked, Use, check_quota, find_long_limit, make_limit
from gpudev.domain.schedule.grid import Ask, Order, Slot, Step
from gpudev.domain.schedule.plan import Plan

_A_PLACE = timedelta(minutes=15)
_RECENT = timedelta(hours=4)


def by_position(now: datetime, position: int) -> datetime:
    """A quarter of an hour for each place in the queue."""
    return now + position * _A_PLACE


class StartRate:
    """As many places an hour as there were starts an hour lately."""

    def __init__(self) -> None:
        self._starts: deque[datetime] = deque()

    def count(self, now: datetime) -> None:
        self._starts.append(now)

    def estimate(self, now: datetime, position: int) -> datetime:
        while self._starts and self._starts[0] < now - _RECENT:
            self._starts.popleft()
        return now + position * _RECENT / max(1, len(self._starts))


PLANNED, LIKELY, POSITION, START_RATE = "planned", "likely", "position", "start rate"
_HOUR = _LEARN_EVERY = timedelta(hours=1)


class PlannedQueue(Queue):
    def __init__(
        self,
        fleet: Mapping[NodeName, int],
        policy: TimePolicy,
        sharing: SharingPolicy = ALIKE,
        gpu_type: str = "",
        users: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(fleet, policy)
        self._sharing = sharing
        self._gpu_type = gpu_type
        self._by_user: defaultdict[str, list[Run]] = defaultdict(list)
        quotas = {user: sharing.quotas.find(user, gpu_type) for user in users}
        slots = sum(fleet.values())
        long_limits = {user: find_long_limit(quota, slots, len(fleet)) for user, quota in quotas.items()}
        self._plan_ = Plan(
            fleet,
            origin=0,
            longest=count_steps(MAX_DURATION, policy),
            limits={user: quota.gpus for user, quota in quotas.items() if quota.gpus is not None},
            long_limits={user: make_limit(most, policy) for user, most in long_limits.items() if most},
        )
        self._until: dict[str, Step] = {}
        self._due: list[tuple[Step, str]] = []
        self._waiting: dict[str, Run] = {}
        self._rate = StartRate()
        self._waits: deque[tuple[datetime, Wait]] = deque()
        self._habits = NO_HABITS
        self._learned_at = self._ordered_at = LONG_AGO
        self._has_room = False

    @override
    def begin(self) -> None:
        grid = self.policy.grid
        origin = grid.step_of(self.now)
        self._plan_.advance(origin, lag=int(grid.time_of(origin) < self.now))
        if self.now - self._learned_at >= _LEARN_EVERY:
            self._learn()

    @override
    def submit(self, run: Run) -> None:
        if not self._is_within_quota(run):
            run.is_rejected = True
            return
        self._by_user[run.asked.user].append(run)
        ask = self._ask_of(run)
        slot = self._plan_.add(ask)
        if slot is None:
            run.gave_up = True
            return
        self._waiting[run.id] = run
        if slot.start > self._plan_.origin:
            self._foretell(run, slot)
        self._note(run.id, slot)

    @override
    def cancel(self, run: Run) -> None:
        if self._waiting.pop(run.id, None):
            self._plan_.remove(run.id)
            self._has_room = True

    @override
    def release(self, run: Run) -> None:
        origin, until = self._plan_.origin, self._until.pop(run.id)
        for node in run.nodes:
            self._plan_.give_back(node, run.asked.gpus, origin, until)
        self._plan_.charge(run.asked.user, -run.slots, origin, until)
        self._has_room |= until > origin

    @override
    def extend(self, run: Run, expires: datetime) -> bool:
        old, new = self._until[run.id], self.policy.grid.step_after(expires + self.policy.grace)
        plan = self._plan_
        if any(plan.stays_free_until(node, run.asked.gpus, old) < new for node in run.nodes):
            return False
        if plan.allowed_until(run.asked.user, run.slots, old) < new:
            return False
        self._hold(run, old, new)
        return True

    @override
    def look(self) -> None:
        if self._has_room:
            self._compress()
        self._start_due()
        if self._has_room:
            # A start took less than was kept for it.
            self._compress()
            self._start_due()

    # What users may have

    def _is_within_quota(self, run: Run) -> bool:
        asked = run.asked
        quota = self._sharing.quotas.find(asked.user, self._gpu_type)
        if quota == NO_LIMIT:
            return True
        own = self._by_user[asked.user] = [
            one
            for one in self._by_user[asked.user]
            if not one.gave_up and (one.ended is None or one.ended > self.now - quota.period)
        ]
        try:
            check_quota(
                Asked(self._gpu_type, run.slots, asked.length), quota, self._use_of(own, quota.period)
            )
        except QuotaExceeded:
            return False
        return True

    def _use_of(self, runs: Sequence[Run], period: timedelta) -> Use:
        since = self.now - period
        running = [one for one in runs if one.is_running]
        waiting = sum(one.slots * (one.asked.length / _HOUR) for one in runs if one.started is None)
        left = sum(one.slots * max(0.0, (one.expires - self.now) / _HOUR) for one in running if one.expires)
        used = sum(
            one.slots * ((min(one.ended or self.now, self.now) - max(one.started, since)) / _HOUR)
            for one in runs
            if one.started is not None
        )
        return Use(
            gpus=sum(one.slots for one in running),
            waiting=sum(one.started is None for one in runs),
            reserved_gpu_hours=waiting + left,
            gpu_hours=waiting + left + used,
        )

    def _compress(self) -> None:
        self._has_room = False
        if self._sharing.fair_share is not None and self.now - self._ordered_at >= _LEARN_EVERY:
            self._ordered_at = self.now
            self._plan_.reorder(self._order_by_use(self._sharing.fair_share))
        for run_id in self._plan_.compress():
            slot = self._plan_.find_slot(run_id)
            if slot is not None:
                self._note(run_id, slot)

    def _start_due(self) -> None:
        while self._due and self._due[0][0] <= self._plan_.origin:
            _, run_id = heapq.heappop(self._due)
            slot = self._plan_.find_slot(run_id)
            if slot is not None and slot.start <= self._plan_.origin:
                self._start_on(self._waiting.pop(run_id), slot)

    def _start_on(self, run: Run, slot: Slot) -> None:
        self._plan_.remove(run.id)
        self.start(run, slot.nodes)
        self._rate.count(self.now)
        if run.expires is not None:
            self._hold(run, self._plan_.origin, self.policy.grid.step_after(run.expires + self.policy.grace))
        self._has_room |= self._until[run.id] < slot.end
        self._remember(run)

    def _hold(self, run: Run, start: Step, until: Step) -> None:
        for node in run.nodes:
            self._plan_.hold(node, run.asked.gpus, start, until)
        self._plan_.charge(run.asked.user, run.slots, start, until)
        self._until[run.id] = until

    def _note(self, run_id: str, slot: Slot) -> None:
        heapq.heappush(self._due, (slot.start, run_id))
        start = self.policy.grid.time_of(slot.start)
        if start > self.now:
            self.look_at(start)

    # What those who wait are told

    def _foretell(self, run: Run, slot: Slot) -> None:
        planned, position = self.policy.grid.time_of(slot.start), len(self._waiting)
        run.estimates = {
            PLANNED: planned,
            POSITION: by_position(self.now, position),
            START_RATE: self._rate.estimate(self.now, position),
        }
        likely = self._habits.find_likely_start(self.now, planned, run.slots, run.asked.length)
        if likely is not None:
            run.estimates[LIKELY] = likely.middle
            run.window = (likely.earliest, likely.latest)

    def _remember(self, run: Run) -> None:
        if run.estimates and run.wait is not None:
            planned = run.estimates[PLANNED] - run.asked.at
            self._waits.append((self.now, Wait(run.slots, run.asked.length, planned, run.wait)))

    def _learn(self) -> None:
        self._learned_at = self.now
        while self._waits and self._waits[0][0] < self.now - LEARNED_FOR:
            self._waits.popleft()
        self._habits = learn_habits(wait for _, wait in self._waits)

    # Who comes first

    def _ask_of(self, run: Run) -> Ask:
        asked = run.asked
        length = count_steps(asked.length, self.policy)
        return Ask(run.id, (0.0, run.id), asked.gpus, length, asked.nodes, owner=asked.user)

    def _order_by_use(self, fair: FairShare) -> Callable[[Ask], Order]:
        used: defaultdict[str, float] = defaultdict(float)
        for run in self.runs.values():
            ended = run.ended or self.now
            if run.started is not None and self.now - ended < fair.remembers:
                used[run.asked.user] += weigh_use(run.slots, run.started, ended, self.now, fair.half_life)
        return lambda ask: (used[ask.owner], ask.id)
