"""Whose reservations a listing is of: one's own, or, for admins, another user's or everybody's."""

from __future__ import annotations

from dataclasses import dataclass

from gpudev.app.caller import Caller
from gpudev.domain.audit import AuditAction
from gpudev.domain.errors import NotAllowed, NotFound
from gpudev.domain.names import UserId
from gpudev.ports.audit import AuditLog
from gpudev.ports.users import Users

EVERYBODY = "all"


@dataclass(frozen=True, slots=True)
class JobsOf:
    users: Users
    audit: AuditLog

    async def __call__(self, caller: Caller, username: str | None) -> UserId | None:
        """The user's id; None stands for everybody."""
        if username is None or username == caller.username:
            return caller.user_id
        if not caller.is_admin:
            raise NotAllowed("only_admins_see_others")
        user_id = None if username == EVERYBODY else await self._get_id(username)
        await self.audit.write(caller.entry(AuditAction.LIST_JOBS, username))
        return user_id

    async def _get_id(self, username: str) -> UserId:
        user = await self.users.find_by_name(username) if username.isprintable() else None
        if user is None:
            raise NotFound("user_not_found", username=username[:60])
        return user.user_id
