"""Reports for admins: usage, and the audit log."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from gpudev.api.admin import only_admins
from gpudev.api.context import App, Caller
from gpudev.api.encoding import json_response
from gpudev.api.errors import OF_EVERY_CALLER, problems
from gpudev.api.times import Moment, as_utc
from gpudev.app.reports import Anchor, AuditQuery, ReportKey, Verification
from gpudev.domain.audit import AuditRecord
from gpudev.domain.errors import Invalid
from gpudev.wire.admin import (
    AuditEntryDetail,
    AuditFinding,
    AuditPage,
    AuditVerification,
    UsageRow,
    UsageTable,
)
from gpudev.wire.text import Text

Filter = Annotated[str, Text(200, code="bad_filter")]
AnchorText = Annotated[str, Text(200, pattern="^([0-9]{1,9}:[0-9a-f]{64})?$")]
_ANCHOR = re.compile(r"([0-9]{1,9}):([0-9a-f]{64})")

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


@router.get("/audit", response_model=AuditPage, responses=problems(400))
async def read_audit(
    app: App,
    caller: Caller,
    user: Annotated[Filter | None, Query(description="Only what this user did.")] = None,
    action: Annotated[Filter | None, Query(description="Only this action.")] = None,
    since: Annotated[Moment | None, Query(description="Only from this time on.")] = None,
    until: Annotated[Moment | None, Query(description="Only before this time.")] = None,
    before: Annotated[int | None, Query(ge=1, lt=2**63, description="Only entries before this one.")] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="The most on a page.")] = 50,
) -> Response:
    """The audit log, newest first."""
    query = AuditQuery(
        username=user,
        action=action,
        since=_with_zone(since),
        until=_with_zone(until),
        before=before,
        limit=limit,
    )
    records = await app.reports.read_audit(caller, query)
    next_before = records[-1].entry_id if len(records) == limit else None
    return json_response(AuditPage(entries=[_entry(record) for record in records], next_before=next_before))


@router.get("/audit/verify", response_model=AuditVerification, responses=problems(400))
async def verify_audit(
    app: App,
    caller: Caller,
    anchor: Annotated[AnchorText | None, Query(description="NUMBER:HASH of a seal, noted earlier.")] = None,
) -> Response:
    """Recompute the whole chain of the audit log."""
    found = await app.reports.verify_audit(caller, _parse_anchor(anchor) if anchor else None)
    return json_response(_verification(found))


def _aware(moment: datetime | None) -> datetime | None:
    """A time without a zone is one of UTC."""
    if moment is None:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else as_utc(moment)


def _with_zone(at: datetime | None) -> datetime | None:
    if at is not None and at.tzinfo is None:
        raise Invalid("time_without_zone", code="bad_time")
    return as_utc(at) if at is not None else None


def _entry(record: AuditRecord) -> AuditEntryDetail:
    entry = record.entry
    return AuditEntryDetail(
        entry_id=record.entry_id,
        at=record.at,
        username=entry.username,
        action=entry.action,
        target=entry.target,
        address=entry.address,
        outcome=entry.outcome,
        detail=entry.detail,
    )


def _verification(found: Verification) -> AuditVerification:
    findings = [
        AuditFinding(
            kind=finding.kind,
            message=finding.message,
            entry_id=finding.entry_id,
            seal_number=finding.seal_number,
        )
        for finding in found.findings
    ]
    return AuditVerification(
        is_intact=not findings,
        seals=found.seals,
        sealed_entries=found.sealed,
        waiting_entries=found.waiting,
        findings=findings,
        last_seal=found.last.number if found.last else None,
        last_hash=found.last.hash.hex() if found.last else None,
    )


def _parse_anchor(text: str) -> Anchor:
    match = _ANCHOR.fullmatch(text)
    if match is None:
        raise Invalid("bad_anchor", code="bad_anchor")
    return Anchor(int(match[1]), bytes.fromhex(match[2]))
