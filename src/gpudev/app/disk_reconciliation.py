"""Bring the rows of disks in line with the storage, or only say how they differ."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import structlog

from gpudev.domain.errors import Conflict, Unavailable
from gpudev.domain.plans.reconciliation import (
    Change,
    ImportDisk,
    ReconciliationPlan,
    Statistics,
    plan_reconciliation,
)
from gpudev.domain.volume import ObservedSnapshot
from gpudev.ports.clock import Clock
from gpudev.ports.disks import DiskLedger, StoredReconciliation
from gpudev.ports.volumes import VolumeListings
from gpudev.texts.fact import Fact, fact
from gpudev.texts.sentences import say

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class DiskReconciliation:
    ledger: DiskLedger
    volumes: VolumeListings
    clock: Clock
    name: str
    """Who did it."""

    async def run(self) -> StoredReconciliation | None:
        """One at a time; None if another is at it."""
        async with self.ledger.lock() as is_ours:
            if not is_ours:
                _log.info("disk_reconciliation_skipped")
                return None
            try:
                plan = await self.check()
            except Unavailable as error:
                return await self._finish(
                    Statistics(errors=1), (fact("nothing_reconciled", cause=error.fact),)
                )
            return await self._carry_out(plan)

    async def check(self) -> ReconciliationPlan:
        """How rows and storage differ; nothing is touched. Rows come first, see `plan_reconciliation`."""
        rows = await self.ledger.list_rows()
        volumes = await self.volumes.list_volumes()
        return plan_reconciliation(rows, volumes, await self._list_snapshots())

    async def _list_snapshots(self) -> tuple[ObservedSnapshot, ...] | None:
        try:
            return await self.volumes.list_snapshots()
        except Unavailable as error:
            _log.warning("snapshots_not_listed", error=error.message)
            return None

    async def _carry_out(self, plan: ReconciliationPlan) -> StoredReconciliation:
        counted, remarks = plan.statistics, list(plan.remarks)
        for change in plan.changes:
            try:
                is_done = await self.ledger.apply(change, self.clock.now())
            except Conflict as conflict:
                counted = replace(counted, errors=counted.errors + 1)
                remarks.append(fact("disk_not_reconciled", cause=conflict.fact))
            else:
                counted = _count(counted, change) if is_done else counted
        return await self._finish(counted, tuple(remarks))

    async def _finish(self, counted: Statistics, remarks: tuple[Fact, ...]) -> StoredReconciliation:
        done = StoredReconciliation(self.clock.now(), self.name, counted, remarks)
        for remark in remarks:
            _log.warning("disk_reconciliation_remark", remark=say(remark))
        _log.info("disk_reconciliation", **asdict(counted))
        await self.ledger.save(done)
        return done


def _count(counted: Statistics, change: Change) -> Statistics:
    if isinstance(change, ImportDisk):
        return replace(counted, created=counted.created + 1)
    return replace(counted, updated=counted.updated + 1)
