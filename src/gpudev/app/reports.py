"""Reports for admins: who used what, how well, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from gpudev.app.identity.authentication import Caller
from gpudev.domain.audit import AuditAction
from gpudev.domain.errors import Invalid
from gpudev.ports.audit import AuditLog
from gpudev.ports.clock import Clock
from gpudev.ports.reports import ReportKey, Reports, UsageReport, UsageSum

LONGEST = timedelta(days=400)
_USUAL = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class ReportUsage:
    reports: Reports
    audit: AuditLog
    prices: Mapping[str, float]
    """Of a GPU for an hour, by type."""
    clock: Clock

    async def __call__(
        self, caller: Caller, begin: datetime | None, end: datetime | None, by: ReportKey
    ) -> tuple[UsageReport, tuple[UsageSum, ...]]:
        """Without a span: the last 30 days."""
        now = self.clock.now()
        until = end or now
        report = UsageReport(begin or until - _USUAL, until, by)
        if not timedelta() < report.end - report.begin <= LONGEST:
            raise Invalid("bad_report_span", code="bad_span")
        await self.audit.write(caller.entry(AuditAction.READ_USAGE, f"by {by}"))
        return report, await self.reports.sum_usage(report, self.prices, now)
