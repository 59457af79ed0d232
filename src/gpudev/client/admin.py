"""What admins ask of the API: about users, disks and the audit log, about nodes, and about dead letters."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from gpudev.wire.admin import (
    AuditPage,
    AuditVerification,
    DeadLetterChanged,
    DeadLetterList,
    DiskDrift,
    DrainRequest,
    NodeChanged,
    NodeList,
    UsageTable,
    UserChanged,
    UserList,
)

if TYPE_CHECKING:
    from gpudev.client.session import Client


class Admin:
    def __init__(self, client: Client) -> None:
        self._client = client

    def list_users(self) -> UserList:
        return self._client.call(UserList, "GET", "/v1/admin/users")

    def disable_user(self, username: str) -> UserChanged:
        """Lock a user out; all keys of theirs end at once."""
        return self._client.call(UserChanged, "POST", f"{_user_path(username)}/disable")

    def enable_user(self, username: str) -> UserChanged:
        return self._client.call(UserChanged, "POST", f"{_user_path(username)}/enable")

    def read_audit(
        self,
        *,
        user: str | None = None,
        action: str | None = None,
        since: str | None = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> AuditPage:
        """A page of the audit log, newest first; `since` is a time in ISO 8601 with its zone."""
        wanted = {"user": user, "action": action, "since": since, "before": before, "limit": limit}
        return self._client.call(AuditPage, "GET", f"/v1/admin/audit{_query(wanted)}")

    def check_disks(self) -> DiskDrift:
        """How disks and their storage differ; nothing is touched."""
        return self._client.call(DiskDrift, "GET", "/v1/admin/disks/check")

    def verify_audit(self, anchor: str | None = None) -> AuditVerification:
        """Have the whole chain recomputed; `anchor` is NUMBER:HASH of a seal that was noted earlier."""
        path = f"/v1/admin/audit/verify{_query({'anchor': anchor})}"
        return self._client.call(AuditVerification, "GET", path)

    def report_usage(self, begin: datetime | None, end: datetime | None, by: str) -> UsageTable:
        """Who used what; times without a zone are of UTC."""
        moments = {"from": begin, "to": end}
        wanted = {name: moment.isoformat() for name, moment in moments.items() if moment is not None}
        return self._client.call(UsageTable, "GET", f"/v1/admin/usage{_query({**wanted, 'by': by})}")


class Nodes:
    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self) -> NodeList:
        """Every node: whether it takes reservations, and which are there."""
        return self._client.call(NodeList, "GET", "/v1/admin/nodes")

    def drain(self, name: str, reason: str = "") -> NodeChanged:
        """Have nothing new placed there, and the owners of what runs there told."""
        return self._client.send(
            NodeChanged, "POST", f"{_node_path(name)}/drain", DrainRequest(reason=reason)
        )

    def undrain(self, name: str) -> NodeChanged:
        """Put it back into service."""
        return self._client.call(NodeChanged, "POST", f"{_node_path(name)}/undrain")


class DeadLetters:
    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self) -> DeadLetterList:
        """Messages that were given up, the newest first."""
        return self._client.call(DeadLetterList, "GET", "/v1/admin/dead-letters")

    def retry(self, letter_id: str) -> DeadLetterChanged:
        """Send it again."""
        return self._client.call(DeadLetterChanged, "POST", f"{_letter_path(letter_id)}/retry")

    def drop(self, letter_id: str) -> DeadLetterChanged:
        """Delete it."""
        return self._client.call(DeadLetterChanged, "POST", f"{_letter_path(letter_id)}/drop")


def _user_path(username: str) -> str:
    return f"/v1/admin/users/{quote(username, safe='')}"


def _node_path(name: str) -> str:
    return f"/v1/admin/nodes/{quote(name, safe='')}"


def _letter_path(letter_id: str) -> str:
    return f"/v1/admin/dead-letters/{quote(letter_id, safe='')}"


def _query(wanted: Mapping[str, str | int | None]) -> str:
    given = {name: value for name, value in wanted.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""
