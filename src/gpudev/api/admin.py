"""Routes of admins."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from gpudev.api.context import App, Caller
from gpudev.api.encoding import json_response
from gpudev.api.moments import Moment, as_utc
from gpudev.api.problems import OF_EVERY_CALLER, problems
from gpudev.api.zones import Zone
from gpudev.app.reports import Anchor, AuditQuery, Verification
from gpudev.domain.audit import AuditRecord
from gpudev.domain.errors import Invalid
from gpudev.domain.plans.reconciliation import describe_change
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say
from gpudev.wire.admin import (
    AuditEntryDetail,
    AuditFinding,
    AuditPage,
    AuditVerification,
    DiskDrift,
    UserChanged,
    UserDetail,
    UserList,
)
from gpudev.wire.text import Lookup, Text

Username = Annotated[Lookup, Path(description="Name of the user.")]
Filter = Annotated[str, Text(200, code="bad_filter")]
AnchorText = Annotated[str, Text(200, pattern="^([0-9]{1,9}:[0-9a-f]{64})?$")]
_ANCHOR = re.compile(r"([0-9]{1,9}):([0-9a-f]{64})")


async def only_admins(app: App, caller: Caller, request: Request) -> None:
    await app.identity.check_admin(caller, request.url.path)


router = APIRouter(
    prefix="/v1/admin", tags=["admin"], dependencies=[Depends(only_admins)], responses=OF_EVERY_CALLER
)


@router.get("/users", response_model=UserList)
async def list_users(app: App, caller: Caller) -> Response:
    """Every user there ever was."""
    users = [
        UserDetail(
            user_id=summary.user.user_id,
            username=summary.user.username,
            is_active=summary.user.is_active,
            created_at=summary.created_at,
            live_reservations=summary.live_reservations,
            last_used_at=summary.last_used_at,
        )
        for summary in await app.identity.list_users(caller)
    ]
    return json_response(UserList(users=users))


@router.post("/users/{name}/disable", response_model=UserChanged, responses=problems(404, 409))
async def disable_user(app: App, caller: Caller, name: Username) -> Response:
    """Lock a user out: all keys end at once, and no login gives another. Dev servers run on."""
    user = await app.identity.set_active(caller, name, is_active=False)
    message = say(fact("user_disabled_now", username=user.username))
    return json_response(UserChanged(username=user.username, is_active=False, message=message))


@router.post("/users/{name}/enable", response_model=UserChanged, responses=problems(404))
async def enable_user(app: App, caller: Caller, name: Username) -> Response:
    """Let a user in again. The old keys do not come back."""
    user = await app.identity.set_active(caller, name, is_active=True)
    message = say(fact("user_enabled", username=user.username))
    return json_response(UserChanged(username=user.username, is_active=True, message=message))


@router.get("/disks/check", response_model=DiskDrift)
async def check_disks(app: App, caller: Caller, zone: Zone) -> Response:
    """How the rows of disks and their storage differ; nothing is touched."""
    found = await app.reports.check_disks(caller)
    plan = found.drift
    counted = plan.statistics
    drift = DiskDrift(
        aws_volumes=counted.aws_volumes,
        db_records=counted.db_records,
        synced=counted.synced,
        orphaned_db_active=counted.orphaned_db_active,
        orphaned_db_deleted=counted.orphaned_db_deleted,
        errors=counted.errors,
        changes=[say(describe_change(change), zone) for change in plan.changes],
        remarks=[say(remark, zone) for remark in plan.remarks],
        problems=[say(problem, zone) for problem in found.problems],
    )
    return json_response(drift)


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


def _with_zone(at: datetime | None) -> datetime | None:
    if at is not None and at.tzinfo is None:
        raise Invalid("time_without_zone", code="bad_time")
    return as_utc(at) if at is not None else None
