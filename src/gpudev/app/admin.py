"""What only admins may do: see all users, lock one out, read the audit log and verify it.

Each of these is written to the audit log. A change is written together with its entry; what only reads
is written down first, so that nothing is seen that was not noted.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpudev.app.audit_log import AuditTally
from gpudev.app.identity.authentication import Caller
from gpudev.domain.audit import (
    AuditAction,
    AuditOutcome,
    AuditRecord,
    Finding,
    FindingKind,
    Seal,
    check_seal,
    find_added,
)
from gpudev.domain.errors import Conflict, NotAllowed, NotFound
from gpudev.ports.audit import AuditLog, AuditQuery
from gpudev.ports.users import User, Users, UserSummary
from gpudev.texts.fact import fact

_SEALS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Anchor:
    """The hash of a seal, noted elsewhere at an earlier time."""

    number: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class Verification:
    """What comes of recomputing the whole chain."""

    seals: int
    sealed: int
    waiting: int
    """Entries that are too new to have a seal."""
    last: Seal | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Admin:
    users: Users
    audit: AuditLog
    tally: AuditTally

    async def check(self, caller: Caller, path: str) -> None:
        """Turn away who is no admin."""
        if not caller.is_admin:
            await self.tally.write(caller.entry(AuditAction.ADMIN, path, outcome=AuditOutcome.REFUSED))
            raise NotAllowed("not_an_admin", username=caller.username)

    async def note(self, caller: Caller, action: AuditAction) -> None:
        """Write down what is about to be looked at."""
        await self.audit.write(caller.entry(action))

    async def list_users(self, caller: Caller) -> tuple[UserSummary, ...]:
        await self.audit.write(caller.entry(AuditAction.LIST_USERS))
        return await self.users.list_all()

    async def set_active(self, caller: Caller, username: str, *, is_active: bool) -> User:
        if not username.isprintable():
            raise NotFound("no_such_user")
        if username == caller.username and not is_active:
            raise Conflict("cannot_disable_self", code="cannot_disable_self")
        action = AuditAction.ENABLE_USER if is_active else AuditAction.DISABLE_USER
        return await self.users.set_active(
            username, is_active=is_active, audit=caller.entry(action, username)
        )

    async def read_audit(self, caller: Caller, query: AuditQuery) -> tuple[AuditRecord, ...]:
        """A page of the log, newest first. That it was read is written after the first page was taken."""
        page = await self.audit.list_page(query)
        if query.before is None:
            await self.audit.write(caller.entry(AuditAction.READ_AUDIT, query.username or ""))
        return page

    async def verify_audit(self, caller: Caller, anchor: Anchor | None) -> Verification:
        await self.audit.write(caller.entry(AuditAction.VERIFY_AUDIT))
        return await verify(self.audit, anchor)


async def verify(audit: AuditLog, anchor: Anchor | None) -> Verification:
    """Recompute every digest and every seal, one seal at a time."""
    findings: list[Finding] = []
    previous: Seal | None = None
    anchored: Seal | None = None
    seals = sealed = 0
    while batch := await audit.list_seals(previous.number if previous else 0, _SEALS_AT_ONCE):
        for seal in batch:
            entries = await audit.list_sealed(seal.number)
            findings.extend(check_seal(seal, previous, entries))
            anchored = seal if anchor and seal.number == anchor.number else anchored
            previous, seals, sealed = seal, seals + 1, sealed + len(entries)
    if anchor is not None:
        findings.extend(_check_anchor(anchor, anchored))
    unsealed = await audit.list_unsealed()
    added = find_added(unsealed, previous)
    return Verification(seals, sealed, len(unsealed) - len(added), previous, (*findings, *added))


def _check_anchor(anchor: Anchor, seal: Seal | None) -> tuple[Finding, ...]:
    if seal is None:
        missing = fact("audit_anchor_missing", seal=anchor.number)
        return (Finding(FindingKind.MISSING, missing, seal_number=anchor.number),)
    if seal.hash != anchor.hash:
        changed = fact("audit_anchor_changed", seal=anchor.number)
        return (Finding(FindingKind.BROKEN_CHAIN, changed, seal_number=anchor.number),)
    return ()
