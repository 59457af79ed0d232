"""What admins read, in words: users, the audit log, usage, disks, nodes and dead letters."""

from __future__ import annotations

from collections.abc import Sequence

from gpudev.cli.render.table import format_table
from gpudev.cli.render.times import Now, format_moment
from gpudev.client.ssh import id8
from gpudev.texts.vocabulary import NodeState
from gpudev.wire.admin import (
    AuditEntryDetail,
    AuditVerification,
    DeadLetterDetail,
    DiskDrift,
    NodeChanged,
    NodeDetail,
    NodeReservation,
    UsageRow,
    UsageTable,
    UserDetail,
)


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


def format_dead_letters(letters: Sequence[DeadLetterDetail], now: Now, width: int | None = None) -> str:
    if not letters:
        return "There are no dead letters."
    rows = [
        (letter.letter_id, format_moment(letter.died_at, now), letter.error or "-", letter.message)
        for letter in letters
    ]
    return format_table(("ID", "SINCE", "ERROR", "MESSAGE"), rows, frozenset(), width)


def format_nodes(nodes: Sequence[NodeDetail], now: Now, width: int | None = None) -> str:
    header = ("NODE", "TYPE", "SLOTS", "STATE", "RESERVATIONS", "UNTIL", "REASON")
    rows = [
        (
            node.name,
            node.gpu_type,
            str(node.slots),
            node.state.replace("_", " "),
            str(len(node.reservations)),
            _last_end(node, now),
            node.reason or "-",
        )
        for node in nodes
    ]
    return format_table(header, rows, frozenset({2, 4}), width)


def format_change(changed: NodeChanged, now: Now, width: int | None = None) -> str:
    """What was done and, on a node that is being drained, what it still waits for."""
    if changed.node.state != NodeState.DRAINING:
        return changed.message
    return f"{changed.message}\n{_format_reservations(changed.node.reservations, now, width)}"


def _format_reservations(reservations: Sequence[NodeReservation], now: Now, width: int | None) -> str:
    header = ("ID", "USER", "NAME", "STATUS", "GPUS", "UNTIL")
    rows = [
        (
            id8(one.job_id),
            one.user,
            one.name,
            one.status,
            str(one.gpu_count),
            format_moment(one.expires_at, now) if one.expires_at else "-",
        )
        for one in reservations
    ]
    return format_table(header, rows, frozenset({4}), width)


def _last_end(node: NodeDetail, now: Now) -> str:
    """When it is empty at the latest, if nothing new comes."""
    ends = [one.expires_at for one in node.reservations if one.expires_at]
    return format_moment(max(ends), now) if ends else "-"


_COLUMNS = (
    "reservations",
    "gpu_hours",
    "mean_wait_minutes",
    "idle_share",
    "early_releases",
    "cost",
)


def format_usage_table(table: UsageTable, width: int | None = None) -> str:
    header = (table.by.upper(), "RESERVATIONS", "GPU HOURS", "MEAN WAIT", "IDLE", "RELEASED EARLY", "COST")
    return format_table(header, [_cells(row) for row in table.rows], width=width)


def format_csv(table: UsageTable) -> str:
    """Full precision; what is not known is empty."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((table.by, *_COLUMNS))
    for row in table.rows:
        writer.writerow(
            (row.key, *("" if (cell := getattr(row, name)) is None else cell for name in _COLUMNS))
        )
    return text.getvalue().rstrip("\n")


def _cells(row: UsageRow) -> tuple[str, ...]:
    return (
        row.key,
        str(row.reservations),
        f"{row.gpu_hours:.1f}",
        "" if row.mean_wait_minutes is None else f"{row.mean_wait_minutes:.1f} min",
        "" if row.idle_share is None else f"{100 * row.idle_share:.0f}%",
        str(row.early_releases),
        "" if row.cost is None else f"{row.cost:.2f}",
    )
