"""One POST of JSON to a webhook, signed, or to something compatible with Slack.

A signature is `X-GPU-Dev-Signature: t=<seconds>,v1=<hex>`: HMAC-SHA256 with the target's secret over the
seconds, a dot and the body, so that neither can be changed or sent again much later. Redirects are not
followed, and the address is checked again at every try: what the operator allows may have changed.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import http.client
import json
from collections.abc import Collection
from dataclasses import asdict
from urllib.parse import urlsplit

from gpudev.domain.errors import Invalid
from gpudev.domain.notification import Notification, Target, check_address
from gpudev.ports.clock import Clock
from gpudev.ports.notifications import NotDelivered
from gpudev.texts.vocabulary import TargetKind

_OK = range(200, 300)
_TRY_AGAIN = {408, 425, 429}
_NOT_TAKEN = range(400, 500)


class WebhookNotifier:
    def __init__(self, allowed_hosts: Collection[str], clock: Clock, timeout_seconds: float = 5) -> None:
        self._allowed = frozenset(host.lower() for host in allowed_hosts)
        self._clock = clock
        self._timeout = timeout_seconds

    async def send(self, target: Target, notification: Notification) -> None:
        try:
            check_address(target.url, self._allowed)
        except Invalid as refusal:
            raise NotDelivered("webhook_address_refused", cause=refusal.fact, is_final=True) from refusal
        host = urlsplit(target.url).netloc
        body = make_body(target, notification)
        headers = {"Content-Type": "application/json", "X-GPU-Dev-Delivery": notification.delivery_id}
        if target.kind is TargetKind.WEBHOOK:
            headers["X-GPU-Dev-Signature"] = sign(target.secret, body, int(self._clock.now().timestamp()))
        try:
            async with asyncio.timeout(self._timeout):
                status = await asyncio.to_thread(self._post, target.url, body, headers)
        except (OSError, TimeoutError, http.client.HTTPException) as error:
            raise NotDelivered("webhook_silent", host=host, error=repr(error)) from error
        except ValueError as error:
            # Something in the address or a header that HTTP cannot carry: it will not change.
            raise NotDelivered("webhook_not_askable", host=host, error=repr(error), is_final=True) from error
        if status not in _OK:
            is_final = status in _NOT_TAKEN and status not in _TRY_AGAIN
            raise NotDelivered("webhook_answered", host=host, status=status, is_final=is_final)

    def _post(self, url: str, body: bytes, headers: dict[str, str]) -> int:
        address = urlsplit(url)
        secure = address.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(address.netloc, timeout=self._timeout)
        try:
            path = f"{address.path or '/'}{'?' if address.query else ''}{address.query}"
            connection.request("POST", path, body, headers)
            return connection.getresponse().status
        finally:
            connection.close()


def make_body(target: Target, notification: Notification) -> bytes:
    if target.kind is TargetKind.SLACK:
        return json.dumps({"text": f"gpu-dev: {notification.message}"}).encode()
    return json.dumps({**asdict(notification), "at": notification.at.isoformat()}).encode()


def sign(secret: str, body: bytes, seconds: int) -> str:
    code = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256)
    return f"t={seconds},v1={code.hexdigest()}"
