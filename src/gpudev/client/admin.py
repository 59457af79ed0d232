"""What admins ask of the API, one method each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol, TypeVar
from urllib.parse import quote, urlencode

from gpudev.wire.admin import AuditPage, AuditVerification, DiskDrift, UserChanged, UserList
from gpudev.wire.reports import UsageTable

T = TypeVar("T")


class Caller(Protocol):
    """The part of a session that is needed here."""

    def call(self, kind: type[T], method: str, path: str) -> T: ...


class Admin:
    def __init__(self, session: Caller) -> None:
        self._session = session

    def list_users(self) -> UserList:
        return self._session.call(UserList, "GET", "/v1/admin/users")

    def disable_user(self, username: str) -> UserChanged:
        """Lock a user out; all keys of theirs end at once."""
        return self._session.call(UserChanged, "POST", f"{_user_path(username)}/disable")

    def enable_user(self, username: str) -> UserChanged:
        return self._session.call(UserChanged, "POST", f"{_user_path(username)}/enable")

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
        return self._session.call(AuditPage, "GET", f"/v1/admin/audit{_query(wanted)}")

    def check_disks(self) -> DiskDrift:
        """How disks and their storage differ; nothing is touched."""
        return self._session.call(DiskDrift, "GET", "/v1/admin/disks/check")

    def verify_audit(self, anchor: str | None = None) -> AuditVerification:
        """Have the whole chain recomputed; `anchor` is NUMBER:HASH of a seal that was noted earlier."""
        path = f"/v1/admin/audit/verify{_query({'anchor': anchor})}"
        return self._session.call(AuditVerification, "GET", path)

    def report_usage(self, begin: datetime | None, end: datetime | None, by: str) -> UsageTable:
        """Who used what; times without a zone are of UTC."""
        moments = {"from": begin, "to": end}
        wanted = {name: moment.isoformat() for name, moment in moments.items() if moment is not None}
        return self._session.call(UsageTable, "GET", f"/v1/admin/usage{_query({**wanted, 'by': by})}")


def _user_path(username: str) -> str:
    return f"/v1/admin/users/{quote(username, safe='')}"


def _query(wanted: Mapping[str, str | int | None]) -> str:
    given = {name: value for name, value in wanted.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""
