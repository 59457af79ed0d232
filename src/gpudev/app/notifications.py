"""One's own choice of what to hear, and where."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from gpudev.app.identity.authentication import Caller
from gpudev.domain.audit import AuditAction
from gpudev.domain.errors import Invalid, NotFound
from gpudev.domain.notification import Target, check_address
from gpudev.ports.audit import AuditLog
from gpudev.ports.notifications import Notifications
from gpudev.texts.vocabulary import TargetKind, Topic


@dataclass(frozen=True, slots=True)
class NotificationUseCases:
    notifications: Notifications
    audit: AuditLog
    allowed_hosts: Collection[str]

    async def find(self, caller: Caller) -> Target | None:
        return await self.notifications.find_target(caller.user_id)

    async def set(self, caller: Caller, kind: str, url: str, topics: Collection[str]) -> Target:
        """A new secret goes with every new address; the old one stays with the old."""
        check_address(url, self.allowed_hosts)
        earlier = await self.find(caller)
        secret = earlier.secret if earlier and earlier.url == url else secrets.token_urlsafe(32)
        target = Target(caller.user_id, _kind_of(kind), url, _topics_of(topics), secret)
        await self.notifications.set_target(target)
        await self.audit.write(caller.entry(AuditAction.SET_NOTIFICATIONS, urlsplit(url).netloc))
        return target

    async def unset(
        self, caller: Caller, kind: str = TargetKind.WEBHOOK, topics: Collection[str] = ()
    ) -> None:
        """The rest of the choice is checked all the same: a wrong topic is never accepted."""
        _kind_of(kind)
        _topics_of(topics)
        await self.notifications.unset_target(caller.user_id)
        await self.audit.write(caller.entry(AuditAction.SET_NOTIFICATIONS, detail="None."))

    async def test(self, caller: Caller) -> None:
        if await self.find(caller) is None:
            raise NotFound("no_notification_address")
        await self.notifications.send_test(caller.user_id)


def _kind_of(text: str) -> TargetKind:
    try:
        return TargetKind(text)
    except ValueError:
        raise Invalid("bad_notification_kind", text=text, code="bad_kind") from None


def _topics_of(texts: Collection[str]) -> frozenset[Topic]:
    known = [topic.value for topic in Topic]
    for text in texts:
        if text not in known:
            raise Invalid("bad_notification_topic", text=text, topics=known, code="bad_topic")
    return frozenset(map(Topic, texts)) or frozenset(Topic)
