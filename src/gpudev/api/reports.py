"""Reports, for admins."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from gpudev.api.admin import only_admins
from gpudev.api.context import App, Caller
from gpudev.api.encoding import json_response
from gpudev.api.moments import Moment, as_utc
from gpudev.api.problems import OF_EVERY_CALLER, problems
from gpudev.app.reports import ReportKey
from gpudev.wire.admin import UsageRow, UsageTable

router = APIRouter(
    prefix="/v1/admin", tags=["admin"], dependencies=[Depends(only_admins)], responses=OF_EVERY_CALLER
)


@router.get("/usage", response_model=UsageTable, responses=problems(400))
async def report_usage(
    app: App,
    caller: Caller,
    begin: Annotated[Moment | None, Query(alias="from", description="First moment; 30 days ago.")] = None,
    end: Annotated[Moment | None, Query(alias="to", description="Last moment; now.")] = None,
    by: Annotated[ReportKey, Query(description="By what it is added up.")] = ReportKey.USER,
) -> Response:
    """How much was used, how long people waited, how much lay idle, and what it cost."""
    report, sums = await app.reports.sum_usage(caller, _aware(begin), _aware(end), by)
    rows = [
        UsageRow(
            key=one.key,
            reservations=one.reservations,
            gpu_hours=one.gpu_hours,
            early_releases=one.early_releases,
            mean_wait_minutes=one.mean_wait_minutes,
            idle_share=one.idle_share,
            cost=one.cost,
        )
        for one in sums
    ]
    return json_response(UsageTable(begin=report.begin, end=report.end, by=report.by, rows=rows))


def _aware(moment: datetime | None) -> datetime | None:
    """A time without a zone is one of UTC."""
    if moment is None:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else as_utc(moment)
