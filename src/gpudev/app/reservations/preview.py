"""Tell what would become of a request, and check that a booking can have its time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from gpudev.domain.catalogue import Catalogue, GpuType
from gpudev.domain.errors import Invalid
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.gang import check_nodes
from gpudev.domain.names import ReservationId
from gpudev.domain.plans.promises import Situation
from gpudev.domain.policy import ALIKE, Shares, SharingPolicy
from gpudev.domain.preview import (
    Foreseen,
    Foresight,
    check_booking,
    is_sooner,
    list_shorter,
    list_smaller,
)
from gpudev.domain.queue import LEARNED_FOR, Accuracy
from gpudev.domain.reservation import Reservation, Spec
from gpudev.ports.admissions import Forecasts
from gpudev.ports.clock import Clock


@dataclass(frozen=True, slots=True)
class Preview:
    forecasts: Forecasts
    catalogue: Catalogue
    policy: TimePolicy
    clock: Clock
    sharing: SharingPolicy = ALIKE

    async def foresee(self, spec: Spec) -> tuple[Foreseen, tuple[Foreseen, ...]]:
        """What would become of it, and up to three like it that start sooner, found on the same plan."""
        gpu_type = self.catalogue.get(spec.gpu_type)
        foresight = await self._read(gpu_type)
        asked = foresight.foresee(spec)
        if asked.starts_now or spec.start_at is not None:
            return asked, ()
        smaller = _first_sooner(asked, map(foresight.foresee, list_smaller(spec, gpu_type)))
        shorter = _first_sooner(asked, map(foresight.foresee, list_shorter(spec)))
        elsewhere = await self._find_elsewhere(asked)
        return asked, (*smaller, *elsewhere, *shorter)

    async def check_booking(self, draft: Reservation, itself: ReservationId) -> None:
        """Refuse a booking that cannot have its time; a repeat does not stand in its own way."""
        if draft.spec.start_at is None:
            return
        foresight = await self._read(self.catalogue.get(draft.spec.gpu_type), itself)
        check_booking(foresight.foresee(draft.spec), draft.spec.start_at)

    async def find_stay(self, holder: Reservation) -> datetime | None:
        """How long it may go on before others were promised its room; None: as long as it likes."""
        gpu_type = self.catalogue.find(holder.spec.gpu_type)
        return (await self._read(gpu_type)).stays_until(holder) if gpu_type else None

    async def measure_accuracy(self) -> tuple[Accuracy, ...]:
        since = self.clock.now() - LEARNED_FOR
        return await self.forecasts.measure_accuracy(since, self.policy.grid.width)

    async def _read(self, gpu_type: GpuType, without: ReservationId | None = None) -> Foresight:
        now = self.clock.now()
        outlook = await self.forecasts.read_outlook(gpu_type.name, now - LEARNED_FOR)
        rows = tuple(row for row in outlook.reservations if row.id != without)
        holders = tuple(row for row in rows if row.holds_room)
        waiting = tuple(row for row in rows if row.is_waiting and row.id not in outlook.disk_busy)
        fair = self.sharing.fair_share
        used = await self.forecasts.read_use(gpu_type.name, fair, now) if fair else {}
        shares = Shares(self.sharing, used)
        situation = Situation(gpu_type, outlook.rooms, holders, self.policy, now, shares=shares)
        return Foresight(situation, waiting, outlook.habits)

    async def _find_elsewhere(self, asked: Foreseen) -> tuple[Foreseen, ...]:
        """The same of the other type that starts first; the name breaks ties."""
        found: list[Foreseen] = []
        for gpu_type in self.catalogue.types:
            spec = replace(asked.spec, gpu_type=gpu_type.name)
            if gpu_type.name != asked.spec.gpu_type and _offers(gpu_type, spec):
                found.append((await self._read(gpu_type)).foresee(spec))
        sooner = [one for one in found if is_sooner(one, asked)]
        return tuple(sorted(sooner, key=lambda one: (one.start, one.spec.gpu_type))[:1])


def _first_sooner(asked: Foreseen, others: Iterable[Foreseen]) -> tuple[Foreseen, ...]:
    return next(((other,) for other in others if is_sooner(other, asked)), ())


def _offers(gpu_type: GpuType, spec: Spec) -> bool:
    try:
        return check_nodes(gpu_type, spec.gpu_count, distributed=spec.node_count > 1) == spec.node_count
    except Invalid:
        return False
