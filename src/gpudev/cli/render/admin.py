"""Users and the audit log in words."""

from __future__ import annotations

from collections.abc import Sequence

from gpudev.cli.render.table import format_table
from gpudev.cli.render.times import Now, format_moment
from gpudev.wire.admin import AuditEntryDetail, AuditVerification, DiskDrift, UserDetail


def format_users(users: Sequence[UserDetail], now: Now, width: int | None = None) -> str:
    header = ("USER", "STATE", "LIVE", "SINCE", "LAST SEEN")
    rows = [
        (
            user.username,
            "active" if user.is_active else "disabled",
            str(user.live_reservations),
            format_moment(user.created_at, now),
            format_moment(user.last_used_at, now) if user.last_used_at else "never",
        )
        for user in users
    ]
    return format_table(header, rows, frozenset({2}), width)


def format_audit(entries: Sequence[AuditEntryDetail], now: Now, width: int | None = None) -> str:
    """To the second, and with the date: a log is read long afterwards."""
    header = ("NUMBER", "TIME", "USER", "ACTION", "ON", "FROM", "OUTCOME", "DETAIL")
    rows = [
        (
            str(entry.entry_id),
            f"{entry.at.astimezone(now.zone):%Y-%m-%d %H:%M:%S}",
            entry.username or "-",
            entry.action,
            entry.target or "-",
            entry.address or "-",
            entry.outcome,
            entry.detail,
        )
        for entry in entries
    ]
    return format_table(header, rows, frozenset({0}), width)


def format_verification(found: AuditVerification) -> str:
    """What was looked at, what is wrong with it, and what to note for the next time."""
    extent = (
        f"{_count(found.sealed_entries, 'entry', 'entries')} under {_count(found.seals, 'seal', 'seals')}"
    )
    waiting = f"; {found.waiting_entries} too new to be sealed" if found.waiting_entries else ""
    verdict = "intact" if found.is_intact else "NOT intact"
    lines = [f"The audit log is {verdict}: {extent}{waiting}."]
    lines += [f"  {finding.message}" for finding in found.findings]
    if found.is_intact and found.last_seal:
        lines.append(f"Note this elsewhere, as --anchor for later: {found.last_seal}:{found.last_hash}")
    return "\n".join(lines)


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def format_drift(drift: DiskDrift) -> str:
    """What differs, a line each, and the figures."""
    figures = f"{drift.db_records} disks, {drift.aws_volumes} volumes, {drift.synced} of them matched."
    lines = [*drift.problems, *drift.remarks, *drift.changes]
    return "\n".join([*lines, figures if lines else f"No differences: {figures}"])
