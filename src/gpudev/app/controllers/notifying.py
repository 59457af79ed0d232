"""Send what is in the queue of notifications; what is not taken is tried again later, and not for ever."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import structlog

from gpudev.domain.errors import Unavailable
from gpudev.domain.notification import find_pause, wants
from gpudev.faults import FAULTS, Faults, describe_error
from gpudev.ports.notify import Delivery, NotDelivered, Notifications, Notifier
from gpudev.texts.fact import fact
from gpudev.texts.sentences import say

_AT_ONCE = 20
_MOST_DEFECTS = 3
_HIDDEN = timedelta(minutes=1)
"""Longer than one try may take: whoever dies in the middle leaves it to the next."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SendNotifications:
    notifications: Notifications
    notifier: Notifier
    faults: Faults = FAULTS

    async def send_all(self) -> None:
        while await self.send_due():
            pass

    async def send_due(self) -> int:
        """One batch; how many there were."""
        due = await self.notifications.read(_AT_ONCE, _HIDDEN)
        await asyncio.gather(*map(self._send_in_boundary, due))
        return len(due)

    async def _send_in_boundary(self, delivery: Delivery) -> None:
        work = partial(self._send_or_bury, delivery)
        await self.faults.attempt("notifications", work, str(delivery.message_id))

    async def _send_or_bury(self, delivery: Delivery) -> None:
        """One that fails three times in a way that nobody thought of is a dead letter."""
        if not delivery.is_ours:
            await self.notifications.bury(delivery.message_id, say(fact("notification_without_topic")))
            return
        try:
            await self._send(delivery)
        except Unavailable:
            raise
        except Exception as error:
            if delivery.tries + 1 >= _MOST_DEFECTS:
                await self.notifications.bury(delivery.message_id, describe_error(error))
            raise

    async def _send(self, delivery: Delivery) -> None:
        target, notification = delivery.target, delivery.notification
        if target is None or not wants(target, notification.event, is_test=delivery.is_test):
            await self.notifications.archive([delivery.message_id])
            return
        try:
            await self.notifier.send(target, notification)
        except NotDelivered as error:
            await self._try_again(delivery, error)
        else:
            await self.notifications.archive([delivery.message_id])

    async def _try_again(self, delivery: Delivery, error: NotDelivered) -> None:
        pause = None if error.is_final else find_pause(delivery.tries + 1)
        log = _log.bind(delivery_id=delivery.notification.delivery_id, error=error.message)
        if pause is None:
            log.warning("notification_given_up", tries=delivery.tries + 1)
            await self.notifications.archive([delivery.message_id])
        else:
            log.info("notification_postponed", seconds=pause.total_seconds())
            await self.notifications.retry_after(delivery.message_id, pause)
