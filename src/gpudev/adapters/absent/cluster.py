"""A cluster that another process owns: from here it is silent, and what needs it is left to that process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import NoReturn

from gpudev.domain.errors import ClusterUnavailable
from gpudev.domain.idle import Usage
from gpudev.domain.job import Job
from gpudev.domain.names import ReservationId
from gpudev.domain.notices import Notice
from gpudev.domain.plans.orphans import Leftover
from gpudev.domain.server import ObservedServer, ServerSpec
from gpudev.domain.volume import FileListing
from gpudev.ports.cluster import ClusterChange, Snapshot


class AbsentCluster:
    def snapshot(self) -> Snapshot:
        _refuse()

    async def find_server(
        self,
        reservation_id: ReservationId,
        node_count: int = 1,  # noqa: ARG002 - they are all known here
    ) -> ObservedServer | None:
        _refuse(reservation_id)

    async def create_server(self, spec: ServerSpec) -> None:
        _refuse(spec.reservation_id)

    async def delete_server(self, reservation_id: ReservationId, uid: str) -> None:
        _refuse(f"{reservation_id} {uid}")

    async def tell(self, reservation_id: ReservationId, uid: str, notices: tuple[Notice, ...]) -> None:
        _refuse(f"{reservation_id} {uid} {len(notices)}")

    async def list_home(self, reservation_id: ReservationId, uid: str) -> FileListing | None:
        _refuse(f"{reservation_id} {uid}")

    async def find_job(self, reservation_id: ReservationId, uid: str) -> Job | None:
        _refuse(f"{reservation_id} {uid}")

    async def measure(self, reservation_id: ReservationId, uid: str, now: datetime) -> Usage | None:
        _refuse(f"{reservation_id} {uid} {now}")

    async def discard_port_slot(self, port_slot: str) -> None:
        _refuse(port_slot)

    def list_leftovers(self) -> tuple[Leftover, ...]:
        _refuse()

    async def remove_leftover(self, leftover: Leftover) -> None:
        _refuse(leftover.name)

    async def changes(self) -> AsyncIterator[ClusterChange]:
        """None ever."""
        none: tuple[ClusterChange, ...] = ()
        for change in none:
            yield change


def _refuse(what: str = "") -> NoReturn:
    raise ClusterUnavailable("cluster_of_another_process", what=what)
