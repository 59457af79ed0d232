"""Days in seconds: the real controllers on a real database, and a clock that jumps to whatever is next.

The cluster is in memory. The controller is killed at random between any two actions of a turn, and stays
away for a while or not. While it is away, users and servers go on. A turn is taken when the database says
that it is due, or when something happened to the reservation, as hints would bring it.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from gpudev.app.controllers.admission import AdmissionController
from gpudev.app.controllers.reservations import Rules
from gpudev.bootstrap.foundation import Stores
from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.domain.errors import ClusterUnavailable, Stale
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.names import ReservationId
from gpudev.ports.turns import Kind
from tests.support.engines import AnyEngine, make_reservation_engine
from tests.support.reservations import NOON
from tests.support.simulated_cluster import SimulatedCluster

REFRESH = timedelta(minutes=2)

Happening = Callable[[], Awaitable[ReservationId | None]]
"""Something that users or servers do; it says whose turn it brings."""


class Killed(BaseException):
    """`kill -9`: nothing of the controller's own code may stop it."""


@dataclass(slots=True)
class MovableClock:
    time: datetime = NOON

    def now(self) -> datetime:
        return self.time


@dataclass(frozen=True, slots=True)
class Downtime:
    begun: datetime
    over: datetime


@dataclass
class Simulation:
    stores: Stores
    cluster: SimulatedCluster
    policy: TimePolicy
    chance: random.Random
    kills_per_action: float
    away: tuple[timedelta, ...]
    """For how long there may be no controller after a kill."""
    admitted_types: tuple[str, ...]
    on_server: Callable[[ReservationId], None] = lambda _: None
    """Called for each server that has been made, to plan what becomes of it."""
    clock: MovableClock = field(default_factory=MovableClock)
    downtimes: list[Downtime] = field(default_factory=list)
    kills: int = 0
    turns: int = 0
    _agenda: list[tuple[datetime, int, Happening]] = field(default_factory=list)
    _order: itertools.count[int] = field(default_factory=itertools.count)
    _back_at: datetime = NOON
    _refreshed_at: datetime = NOON

    def at(self, moment: datetime, happening: Happening) -> None:
        heapq.heappush(self._agenda, (moment, next(self._order), happening))

    def first_controller_moment(self, moment: datetime) -> datetime:
        """The moment itself, or the end of the downtime that it falls into."""
        for downtime in self.downtimes:
            if downtime.begun < moment < downtime.over:
                moment = downtime.over
        return moment

    async def run_until(self, end: datetime) -> None:
        """Jump from one thing that happens or is due to the next."""
        reservations = self._hire()
        while (moment := await self._find_next()) is not None and moment <= end:
            self.clock.time = max(moment, self.clock.time)
            hinted = await self._let_happen()
            if self.clock.time < self._back_at:
                continue
            reservations = await self._survive(reservations, hinted)
            while self.cluster.created:
                self.on_server(self.cluster.created.pop())

    async def _find_next(self) -> datetime | None:
        now = self.clock.time
        due = await self.stores.turns.list_due(Kind.RESERVATION, now, 1)
        later = await self.stores.turns.find_next(Kind.RESERVATION, after=now)
        work = [now] * len(due) + ([later] if later else [])
        if not self.cluster.is_silent and await self.stores.admissions.list_waiting_types():
            work.append(self._refreshed_at + REFRESH)
        happenings = [self._agenda[0][0]] if self._agenda else []
        return min([*happenings, *(max(moment, self._back_at) for moment in work)], default=None)

    async def _let_happen(self) -> list[ReservationId]:
        hinted: list[ReservationId] = []
        while self._agenda and self._agenda[0][0] <= self.clock.time:
            _, _, happening = heapq.heappop(self._agenda)
            concerned = await happening()
            if concerned is not None:
                hinted.append(concerned)
        return hinted

    async def _work(self, reservations: AnyEngine, hinted: list[ReservationId]) -> None:
        """Everything that is due now, until nothing is."""
        now = self.clock.time
        todo = hinted
        while True:
            await self._admit()
            due = await self.stores.turns.list_due(Kind.RESERVATION, now, 1000)
            todo = list(dict.fromkeys([*todo, *map(ReservationId, due)]))
            if not todo:
                return
            for one in todo:
                await self._turn(reservations, one)
            todo = []

    async def _turn(self, reservations: AnyEngine, one: ReservationId) -> None:
        self.turns += 1
        with suppress(ClusterUnavailable, Stale):  # the database says when it is due again
            await reservations.turn(one)

    async def _admit(self) -> None:
        is_old = self.clock.time >= self._refreshed_at + REFRESH
        if self.cluster.is_silent or not (is_old or self.cluster.has_room_changed):
            return
        self.cluster.has_room_changed = False
        self._refreshed_at = self.clock.time
        for gpu_type in self.admitted_types:
            rules = Rules(DEFAULT_CATALOGUE, self.policy)
            stores = self.stores
            controller = AdmissionController(
                stores.admissions, stores.nodes, self.cluster, rules, self.clock, "simulation"
            )
            await controller.turn(gpu_type)

    def _hire(self) -> AnyEngine:
        stores = Stores.on(self.stores.database)  # a token of its own, as every process has
        rules = Rules(DEFAULT_CATALOGUE, self.policy)
        return make_reservation_engine(stores, self.cluster, self.clock, rules, self._maybe_die)

    def _maybe_die(self, _point: str) -> None:
        if self.chance.random() < self.kills_per_action:
            raise Killed

    async def _survive(self, reservations: AnyEngine, hinted: list[ReservationId]) -> AnyEngine:
        """Work through this moment by as many controllers as it takes; then there may be none for a while."""
        kills = self.kills
        while True:
            try:
                await self._work(reservations, hinted)
            except Killed:
                self.kills += 1
                self.cluster.has_room_changed = True
                await self.stores.turns.take_over(Kind.RESERVATION, self.clock.time)
                reservations = self._hire()
            else:
                break
        away = self.chance.choice(self.away) if self.kills > kills else timedelta()
        if away:
            self._back_at = self.clock.time + away
            self.downtimes.append(Downtime(self.clock.time, self._back_at))
            await self.stores.turns.take_over(Kind.RESERVATION, self._back_at)
        return reservations
