"""Reports: who used what, quotas, the state of disks, and the audit log.

Reports for admins are written to the audit log before they are made: nothing is seen that was not noted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from gpudev.app.audit_log import Anchor, Verification, verify
from gpudev.app.disk_reconciliation import DiskReconciliation
from gpudev.app.identity.authentication import Caller
from gpudev.domain.audit import AuditAction, AuditRecord
from gpudev.domain.catalogue import Catalogue
from gpudev.domain.errors import Invalid
from gpudev.domain.plans.reconciliation import ReconciliationPlan
from gpudev.domain.quota import NO_LIMIT, Quota, Quotas, QuotaUse, Use, find_long_limit
from gpudev.ports.audit import AuditLog, AuditQuery
from gpudev.ports.clock import Clock
from gpudev.ports.disks import Disks
from gpudev.ports.nodes import GpuTypes
from gpudev.ports.reports import QuotaUses, ReportKey, Reports, UsageReport, UsageSum
from gpudev.ports.users import User
from gpudev.texts.fact import Fact, fact

__all__ = ["Anchor", "AuditQuery", "DiskReport", "QuotaReport", "ReportKey", "ReportUseCases", "Verification"]

LONGEST = timedelta(days=400)
_USUAL = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class DiskReport:
    drift: ReconciliationPlan
    """How the rows of disks and their storage differ."""
    problems: tuple[Fact, ...]
    """Of everybody's disks: those that cannot go on."""


@dataclass(frozen=True, slots=True)
class QuotaReport:
    uses: QuotaUses
    gpu_types: GpuTypes
    catalogue: Catalogue
    quotas: Quotas
    clock: Clock

    async def list_for(self, user: User) -> tuple[QuotaUse, ...]:
        """One for each GPU type that is limited, in the order of the catalogue."""
        names = [gpu_type.name for gpu_type in self.catalogue.types]
        found = {name: self.quotas.find(user.username, name) for name in names}
        limited = {name: quota for name, quota in found.items() if quota != NO_LIMIT}
        if not limited:
            return ()
        now = self.clock.now()
        since = {name: now - quota.period for name, quota in limited.items()}
        uses = await self.uses.read_use(user.user_id, since, now)
        long_limits = await self._find_long_limits(limited)
        return tuple(
            QuotaUse(name, quota, uses.get(name, Use()), long_limits.get(name))
            for name, quota in limited.items()
        )

    async def _find_long_limits(self, quotas: Mapping[str, Quota]) -> dict[str, int | None]:
        """By the nodes that were in service when admission looked last."""
        if all(quota.long_share is None for quota in quotas.values()):
            return {}
        stored = [one.availability for one in await self.gpu_types.list_availability()]
        return {
            one.gpu_type: find_long_limit(quotas[one.gpu_type], one.total, one.nodes)
            for one in stored
            if one.gpu_type in quotas
        }


@dataclass(frozen=True, slots=True)
class ReportUseCases:
    reports: Reports
    audit: AuditLog
    prices: Mapping[str, float]
    """Of a GPU for an hour, by type."""
    clock: Clock
    quota_report: QuotaReport
    storage: DiskReconciliation
    disks: Disks

    async def sum_usage(
        self, caller: Caller, begin: datetime | None, end: datetime | None, by: ReportKey
    ) -> tuple[UsageReport, tuple[UsageSum, ...]]:
        """Who used what, how well, and what it cost. Without a span: the last 30 days."""
        now = self.clock.now()
        until = end or now
        report = UsageReport(begin or until - _USUAL, until, by)
        if not timedelta() < report.end - report.begin <= LONGEST:
            raise Invalid("bad_report_span", code="bad_span")
        await self.audit.write(caller.entry(AuditAction.READ_USAGE, f"by {by}"))
        return report, await self.reports.sum_usage(report, self.prices, now)

    def list_quotas(self, user: User) -> Awaitable[tuple[QuotaUse, ...]]:
        """A user's quotas, and what is used of them."""
        return self.quota_report.list_for(user)

    async def check_disks(self, caller: Caller) -> DiskReport:
        """Nothing is touched."""
        await self.audit.write(caller.entry(AuditAction.CHECK_DISKS))
        drift = await self.storage.check()
        problems = tuple(
            fact("disk_problem", name=disk.spec.name, username=disk.spec.username, problem=disk.problem)
            for disk in await self.disks.list_stuck()
        )
        return DiskReport(drift, problems)

    async def read_audit(self, caller: Caller, query: AuditQuery) -> tuple[AuditRecord, ...]:
        """A page of the log, newest first. That it was read is written after the first page was taken."""
        page = await self.audit.list_page(query)
        if query.before is None:
            await self.audit.write(caller.entry(AuditAction.READ_AUDIT, query.username or ""))
        return page

    async def verify_audit(self, caller: Caller, anchor: Anchor | None) -> Verification:
        await self.audit.write(caller.entry(AuditAction.VERIFY_AUDIT))
        return await verify(self.audit, anchor)
