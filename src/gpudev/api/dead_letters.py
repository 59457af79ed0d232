"""Routes of the dead letters, for admins."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from gpudev.api.admin import only_admins
from gpudev.api.context import App, Caller
from gpudev.api.encoding import json_response
from gpudev.api.problems import OF_EVERY_CALLER, problems
from gpudev.app.service import DeadLetter
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say
from gpudev.wire.admin import DeadLetterChanged, DeadLetterDetail, DeadLetterList
from gpudev.wire.text import Lookup

Letter = Annotated[Lookup, Path(description="Id of the dead letter, gpu_reservations-12 for example.")]

router = APIRouter(
    prefix="/v1/admin/dead-letters",
    tags=["admin"],
    dependencies=[Depends(only_admins)],
    responses=OF_EVERY_CALLER,
)


@router.get("", response_model=DeadLetterList)
async def list_dead_letters(app: App, caller: Caller) -> Response:
    """Messages that are not ours, or failed three times, each with its error."""
    letters = await app.service.list_dead_letters(caller)
    return json_response(DeadLetterList(dead_letters=list(map(_detail, letters))))


@router.post("/{name}/retry", response_model=DeadLetterChanged, responses=problems(404))
async def retry_dead_letter(app: App, caller: Caller, name: Letter) -> Response:
    """Send a dead letter again."""
    sent = await app.service.retry_dead_letter(caller, name)
    message = say(fact("letter_sent_again", letter=sent.text))
    return json_response(DeadLetterChanged(letter_id=sent.text, message=message))


@router.post("/{name}/drop", response_model=DeadLetterChanged, responses=problems(404))
async def drop_dead_letter(app: App, caller: Caller, name: Letter) -> Response:
    """Delete a dead letter."""
    dropped = await app.service.drop_dead_letter(caller, name)
    message = say(fact("letter_deleted", letter=dropped.text))
    return json_response(DeadLetterChanged(letter_id=dropped.text, message=message))


def _detail(letter: DeadLetter) -> DeadLetterDetail:
    return DeadLetterDetail(
        letter_id=letter.letter_id.text,
        queue=letter.letter_id.queue,
        message=letter.message,
        error=letter.error,
        died_at=letter.died_at,
    )
