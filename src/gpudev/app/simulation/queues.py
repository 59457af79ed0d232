"""What a simulated queue is: it is told what happens, and starts whom it will.

The clock, those who run and what becomes of them are the same for all; queues differ in whom they let start,
and in what they tell those who wait.
"""

from __future__ import annotations

import heapq
import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import IntEnum

from gpudev.app.simulation.workload import Trace
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.names import NodeName
from gpudev.domain.queue import Submission

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
START_TAKES = timedelta(seconds=30)
"""How long the simulated servers need until they answer; less than the plan reckons with."""
ASKS_BEFORE_END = timedelta(minutes=20)
"""When somebody who wants more time asks for it."""


class Kind(IntEnum):
    """What happens at one moment happens in this order."""

    END = 0
    EXTEND = 1
    GIVE_UP = 2
    SUBMIT = 3
    LOOK = 4


@dataclass(slots=True)
class Run:
    """One request: what was told and what came of it."""

    id: str
    asked: Submission
    estimates: dict[str, datetime] = field(default_factory=dict)
    """When it would start, by each way of telling it, as told when it came; empty if it started at once."""
    window: tuple[datetime, datetime] | None = None
    started: datetime | None = None
    nodes: tuple[NodeName, ...] = ()
    expires: datetime | None = None
    ended: datetime | None = None
    gave_up: bool = False
    is_rejected: bool = False
    """By the quota of its user."""

    @property
    def is_waiting(self) -> bool:
        return self.started is None and not self.gave_up and not self.is_rejected

    @property
    def is_running(self) -> bool:
        return self.started is not None and self.ended is None

    @property
    def slots(self) -> int:
        return self.asked.gpus * self.asked.nodes

    @property
    def wait(self) -> timedelta | None:
        return self.started - self.asked.at if self.started else None


class Queue(ABC):
    def __init__(self, fleet: Mapping[NodeName, int], policy: TimePolicy) -> None:
        self.fleet = fleet
        self.policy = policy
        self.now = LONG_AGO
        self.runs: dict[str, Run] = {}
        self._agenda: list[tuple[datetime, Kind, int, str]] = []
        self._order = itertools.count()

    def replay(self, trace: Trace) -> tuple[Run, ...]:
        """Everything that is asked for, until the last of it is over."""
        for number, asked in enumerate(trace):
            run = Run(f"{number:08}", asked)
            self.runs[run.id] = run
            self._plan(asked.at, Kind.SUBMIT, run.id)
        while self._agenda:
            self._tick()
        return tuple(self.runs.values())

    def _tick(self) -> None:
        """All that happens at one moment, and then one look at who may start."""
        self.now = self._agenda[0][0]
        self.begin()
        while self._agenda and self._agenda[0][0] == self.now:
            _, kind, _, run_id = heapq.heappop(self._agenda)
            self._let_happen(kind, self.runs[run_id] if run_id else None)
        self.look()

    def _let_happen(self, kind: Kind, run: Run | None) -> None:
        if run is None:
            return
        if kind is Kind.SUBMIT:
            if run.asked.gives_up is not None:
                self._plan(self.now + run.asked.gives_up, Kind.GIVE_UP, run.id)
            self.submit(run)
        elif kind is Kind.GIVE_UP and run.is_waiting:
            run.gave_up = True
            self.cancel(run)
        elif kind is Kind.EXTEND and run.is_running:
            self._extend(run)
        elif kind is Kind.END and run.is_running and run.expires and self.now >= self._leaves_at(run):
            run.ended = self.now
            self.release(run)

    def look_at(self, moment: datetime) -> None:
        """Have somebody look at the queue then."""
        self._plan(moment, Kind.LOOK, "")

    def start(self, run: Run, nodes: tuple[NodeName, ...]) -> None:
        run.started, run.nodes = self.now, nodes
        run.expires = self.now + START_TAKES + run.asked.length
        self._plan(self._leaves_at(run), Kind.END, run.id)
        if run.asked.extends:
            self._plan(max(self.now, run.expires - ASKS_BEFORE_END), Kind.EXTEND, run.id)

    def _leaves_at(self, run: Run) -> datetime:
        """When its GPUs are free: given back, or taken back after the grace."""
        if run.started is None or run.expires is None:
            raise ValueError(run.id)
        if run.asked.used is not None:
            return min(run.started + START_TAKES + run.asked.used, run.expires + self.policy.grace)
        return run.expires + self.policy.grace

    def _extend(self, run: Run) -> None:
        if run.expires is None or not self.extend(run, run.expires + run.asked.extends):
            return
        run.expires += run.asked.extends
        self._plan(self._leaves_at(run), Kind.END, run.id)

    def _plan(self, moment: datetime, kind: Kind, run_id: str) -> None:
        heapq.heappush(self._agenda, (moment, kind, next(self._order), run_id))

    # What queues differ in

    @abstractmethod
    def begin(self) -> None:
        """A new moment."""

    @abstractmethod
    def submit(self, run: Run) -> None: ...

    @abstractmethod
    def cancel(self, run: Run) -> None:
        """It waits no longer."""

    @abstractmethod
    def release(self, run: Run) -> None:
        """Its nodes are free."""

    @abstractmethod
    def extend(self, run: Run, expires: datetime) -> bool:
        """Whether it may have so much longer."""

    @abstractmethod
    def look(self) -> None:
        """Start whoever can be."""
