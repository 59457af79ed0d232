"""Routes of one's own notifications."""

from __future__ import annotations

from fastapi import APIRouter, Response

from gpudev.api.context import App, Caller
from gpudev.api.encoding import json_response
from gpudev.api.errors import OF_EVERY_CALLER, problems
from gpudev.app.application import Application
from gpudev.domain.notification import Target
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say
from gpudev.texts.vocabulary import TargetKind
from gpudev.wire.notifications import NotificationChoice, NotificationSettings, NotificationTest

router = APIRouter(prefix="/v1/me/notifications", tags=["notifications"], responses=OF_EVERY_CALLER)


@router.get("", response_model=NotificationSettings)
async def get_notifications(app: App, caller: Caller) -> Response:
    """Where one's own notifications go, and of what they are."""
    return json_response(_shown(app, await app.notifications.find(caller)))


@router.put("", response_model=NotificationSettings, responses=problems(400))
async def set_notifications(app: App, caller: Caller, body: NotificationChoice) -> Response:
    """Choose where and of what. The answer tells the secret that a webhook's messages are signed with."""
    if not body.url:
        await app.notifications.unset(caller, body.kind, body.topics)
        return json_response(_shown(app, None))
    target = await app.notifications.set(caller, body.kind, body.url, body.topics)
    return json_response(_shown(app, target, with_secret=True), headers={"Cache-Control": "no-store"})


@router.post("/test", response_model=NotificationTest, responses=problems(404))
async def test_notifications(app: App, caller: Caller) -> Response:
    """Send oneself a notification that means nothing."""
    await app.notifications.test(caller)
    return json_response(NotificationTest(message=say(fact("notification_test_sent"))))


def _shown(app: Application, target: Target | None, *, with_secret: bool = False) -> NotificationSettings:
    is_signed = target is not None and target.kind is TargetKind.WEBHOOK
    return NotificationSettings(
        topics=sorted(target.topics) if target else [],
        allowed_hosts=sorted(app.notifications.allowed_hosts),
        url=target.url if target else None,
        kind=target.kind if target else None,
        secret=target.secret if target and with_secret and is_signed else None,
    )
