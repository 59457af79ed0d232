"""The turn engine: claim → observe → plan → execute → record → settle, for any kind of item.

The engine knows keys, leases, messages, times and defects, and nothing of what the items are. A kind of
item is a `Work`: an observer, a plan and an executor. Losing every hint that wakes the engine delays and
never breaks anything: what is due stands in the database, and the sweep finds it.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, Protocol, TypeVar

import structlog

from gpudev.app.turns.loop import Chore, Loop
from gpudev.domain.errors import Stale, StoreUnavailable, Unavailable
from gpudev.domain.plans.turn import LookAgain
from gpudev.faults import FAULTS, Faults, describe_error
from gpudev.ports.clock import Clock
from gpudev.ports.queue import Message, MessageQueue
from gpudev.ports.turns import Kind, Lease, Turns
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say

_FAR_FUTURE = datetime.max.replace(tzinfo=UTC)
_NAP = timedelta(seconds=0.5)


class Alarm:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until = _FAR_FUTURE
        self._is_early = asyncio.Event()

    def watch(self) -> None:
        """From now on until `sleep_until`, whatever time is set may be earlier than what was read."""
        self._until = _FAR_FUTURE
        self._is_early.clear()

    def set(self, at: datetime | None) -> None:
        if at is not None and at < self._until:
            self._is_early.set()

    async def sleep_until(self, due: datetime) -> None:
        """Never long without a look at the clock, which may have been changed meanwhile."""
        self._until = due
        while (left := due - self._clock.now()) > timedelta() and not self._is_early.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_early.wait(), min(left, _NAP).total_seconds())


SWEEP = timedelta(seconds=30)
_MAX_DEFECTS = 3
_MAX_ROUNDS = 12
_RETRY = timedelta(seconds=2)
_SILENT_RETRY = timedelta(seconds=10)
_STORE_RETRY = timedelta(seconds=0.2)
_MESSAGES_AT_ONCE = 100
_DUE_AT_ONCE = 500

_log = structlog.get_logger(__name__)

FaultPoint = Callable[[str], None]
"""Before and after each action, by name: where tests kill the process."""


def no_fault(_point: str) -> None:
    """The fault point of production."""


class PlanAgain(Exception):
    """The action had no effect: what was planned after it is not done, and the next plan does without it."""


class Claimed(Protocol):
    """An item as it was claimed, with the lease; each action of a turn gives the next one."""

    @property
    def lease(self) -> Lease: ...


ClaimT = TypeVar("ClaimT", bound=Claimed)
SeenT = TypeVar("SeenT")
ActionT = TypeVar("ActionT")


@dataclass(frozen=True, slots=True)
class Observed(Generic[SeenT]):
    seen: SeenT
    silence: Unavailable | None = None
    """What did not answer; the plan decides what it can without it."""


class Work(Protocol[ClaimT, SeenT, ActionT]):
    """What a kind of item supplies."""

    kind: Kind

    async def claim(self, key: str) -> ClaimT | None:
        """None while another process has it, or when there is none."""
        ...

    async def observe(self, claim: ClaimT, before: SeenT | None) -> Observed[SeenT]:
        """What is there now; `before` is what the round before has seen in the same turn."""
        ...

    def plan(self, seen: SeenT) -> Sequence[ActionT]:
        """Pure. A plan of nothing but looks ends the turn."""
        ...

    async def execute(self, claim: ClaimT, action: ActionT) -> ClaimT:
        """One action, idempotent, without decisions; the item as it is afterwards."""
        ...

    def find_next_turn(self, claim: ClaimT, looks: Sequence[datetime]) -> datetime | None:
        """After a turn whose last plan asked for these looks; None: not before somebody asks."""
        ...

    async def note_refusal(self, claim: ClaimT, error: Unavailable) -> datetime | None:
        """Tell whoever has to act before it can work; when it is tried again, or None if nobody has to."""
        ...

    async def give_up(self, claim: ClaimT, error: str, message_ids: Sequence[int]) -> bool:
        """Fail what our code fails on, put its messages with the dead letters and end the lease.

        False if there is nothing to fail: then it is tried for ever.
        """
        ...


@dataclass(slots=True)
class _Turn(Generic[ClaimT]):
    """A turn that is under way."""

    claim: ClaimT
    looks: tuple[datetime, ...] = ()
    silence: Unavailable | None = None


@dataclass(frozen=True, slots=True)
class Hands:
    """What an engine works with, whatever the kind."""

    turns: Turns
    queue: MessageQueue
    clock: Clock
    fault_point: FaultPoint = no_fault
    faults: Faults = FAULTS


class Engine(Generic[ClaimT, SeenT, ActionT]):
    def __init__(self, work: Work[ClaimT, SeenT, ActionT], hands: Hands, *, concurrency: int = 1) -> None:
        self._work = work
        self._turns = hands.turns
        self._queue = hands.queue
        self._clock = hands.clock
        self._fault_point = hands.fault_point
        self._messages: defaultdict[str, list[Message]] = defaultdict(list)
        self._alarm = Alarm(hands.clock)
        self._loop: Loop[str] = Loop(f"{work.kind}s", self.turn, concurrency=concurrency, faults=hands.faults)
        self.wake = self._loop.wake
        self.run = self._loop.run
        self.stop = self._loop.stop

    def list_chores(self) -> tuple[Chore, ...]:
        return (
            Chore(f"{self._work.kind}_messages", self.read_messages, SWEEP.total_seconds()),
            Chore(f"{self._work.kind}_sweep", self._sweep),
        )

    async def read_messages(self) -> None:
        """Wake all that somebody sent a message about; a message is archived by the turn that it brings."""
        while True:
            messages = await self._queue.read(_MESSAGES_AT_ONCE)
            for message in messages:
                self._messages[message.key].append(message)
                self._loop.wake(message.key, soon=True)
            if len(messages) < _MESSAGES_AT_ONCE:
                # What came meanwhile has its own signal, and what was hidden by a rival is that rival's.
                return

    async def _sweep(self) -> None:
        """Wake what is due, then sleep until the next one is; a turn that sets an earlier one pokes."""
        while True:
            now = self._clock.now()
            self._alarm.watch()
            try:
                due = await self._wake_due(now)
            except StoreUnavailable:
                due = now + _STORE_RETRY
            await self._alarm.sleep_until(due)

    async def _wake_due(self, now: datetime) -> datetime:
        for key in await self._turns.list_due(self._work.kind, now, _DUE_AT_ONCE):
            self._loop.wake(key)
        next_turn = await self._turns.find_next(self._work.kind, after=now)
        return min(now + SWEEP, next_turn or now + SWEEP)

    async def turn(self, key: str) -> None:
        """Bring one item as far as it can go now."""
        messages = self._messages.pop(key, [])
        ids = [message.message_id for message in messages]
        claim = await self._work.claim(key)
        if claim is None:
            await self._bury_if_unknown(key, ids)
            return
        turn = _Turn(claim)
        try:
            await self._take(turn)
        except Exception as error:
            await self._note_error(turn, error, messages)
            raise
        if turn.silence is not None:
            raise turn.silence
        if ids:
            await self._queue.archive(ids)

    async def _take(self, turn: _Turn[ClaimT]) -> None:
        """Rounds until a plan asks for nothing but patience; then the next turn is set."""
        try:
            await self._take_rounds(turn)
        except Unavailable as error:
            retry_at = await self._work.note_refusal(turn.claim, error)
            if retry_at is None:
                raise
            await self._turns.end(turn.claim.lease, retry_at, defects=turn.claim.lease.defects)
            return
        next_turn = self._work.find_next_turn(turn.claim, turn.looks)
        if next_turn is None:
            turn.silence = None
        elif turn.silence is not None:
            # What has a time, such as a warning, has it in the silence, too.
            next_turn = min(next_turn, self._clock.now() + _SILENT_RETRY)
        defects = turn.claim.lease.defects if turn.silence else 0
        await self._turns.end(turn.claim.lease, next_turn, defects=defects)
        self._alarm.set(next_turn)

    async def _take_rounds(self, turn: _Turn[ClaimT]) -> None:
        seen: SeenT | None = None
        for _ in range(_MAX_ROUNDS):
            observed = await self._work.observe(turn.claim, seen)
            seen, turn.silence = observed.seen, observed.silence or turn.silence
            plan = self._work.plan(seen)
            turn.looks = tuple(action.at for action in plan if isinstance(action, LookAgain))
            try:
                for action in plan:
                    turn.claim = await self._execute(turn.claim, action)
            except PlanAgain:
                continue
            if len(turn.looks) == len(plan):
                return

    async def _execute(self, claim: ClaimT, action: ActionT) -> ClaimT:
        name = snake_case(type(action).__name__)
        self._fault_point(f"before_{name}")
        after = await self._work.execute(claim, action)
        self._fault_point(f"after_{name}")
        return after

    async def _note_error(self, turn: _Turn[ClaimT], error: Exception, messages: Sequence[Message]) -> None:
        """What is not there, or moved on, is no attempt. Of defects the third in a row is the last."""
        lease, now = turn.claim.lease, self._clock.now()
        if isinstance(error, Unavailable | Stale):
            await self._turns.end(lease, now + _RETRY, defects=lease.defects)
            return
        defects = lease.defects + 1
        words = describe_error(error)
        ids = [message.message_id for message in messages]
        if defects >= _MAX_DEFECTS and await self._work.give_up(turn.claim, words, ids):
            _log.error("given_up", kind=lease.kind, key=lease.key, error=words)
            return
        await self._turns.end(lease, now + _RETRY * defects, defects=defects)
        worn = [message.message_id for message in messages if message.tries >= _MAX_DEFECTS]
        await self._queue.bury(worn, words)

    async def _bury_if_unknown(self, key: str, message_ids: Sequence[int]) -> None:
        """Messages about what another process has in hand come back; about what does not exist, for ever."""
        if message_ids and not await self._turns.is_known(self._work.kind, key):
            await self._queue.bury(message_ids, say(fact("item_not_found", kind=self._work.kind, key=key)))


def snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
