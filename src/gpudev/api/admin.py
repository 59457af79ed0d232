"""Routes of admins: users, the storage of disks, and dead letters."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response

from gpudev.api.context import App, Caller
from gpudev.api.encoding import json_response
from gpudev.api.errors import OF_EVERY_CALLER, problems
from gpudev.api.times import Zone
from gpudev.app.service import DeadLetter
from gpudev.domain.plans.reconciliation import describe_change
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say
from gpudev.wire.admin import (
    DeadLetterChanged,
    DeadLetterDetail,
    DeadLetterList,
    DiskDrift,
    UserChanged,
    UserDetail,
    UserList,
)
from gpudev.wire.text import Lookup

Username = Annotated[Lookup, Path(description="Name of the user.")]
Letter = Annotated[Lookup, Path(description="Id of the dead letter, gpu_reservations-12 for example.")]


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


@router.get("/dead-letters", response_model=DeadLetterList)
async def list_dead_letters(app: App, caller: Caller) -> Response:
    """Messages that are not ours, or failed three times, each with its error."""
    letters = await app.service.list_dead_letters(caller)
    return json_response(DeadLetterList(dead_letters=list(map(_dead_letter, letters))))


@router.post("/dead-letters/{name}/retry", response_model=DeadLetterChanged, responses=problems(404))
async def retry_dead_letter(app: App, caller: Caller, name: Letter) -> Response:
    """Send a dead letter again."""
    sent = await app.service.retry_dead_letter(caller, name)
    message = say(fact("letter_sent_again", letter=sent.text))
    return json_response(DeadLetterChanged(letter_id=sent.text, message=message))


@router.post("/dead-letters/{name}/drop", response_model=DeadLetterChanged, responses=problems(404))
async def drop_dead_letter(app: App, caller: Caller, name: Letter) -> Response:
    """Delete a dead letter."""
    dropped = await app.service.drop_dead_letter(caller, name)
    message = say(fact("letter_deleted", letter=dropped.text))
    return json_response(DeadLetterChanged(letter_id=dropped.text, message=message))


def _dead_letter(letter: DeadLetter) -> DeadLetterDetail:
    return DeadLetterDetail(
        letter_id=letter.letter_id.text,
        queue=letter.letter_id.queue,
        message=letter.message,
        error=letter.error,
        died_at=letter.died_at,
    )
