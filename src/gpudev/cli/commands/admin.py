"""`gpu-dev admin`: what only admins may do. Nodes and the simulation have modules of their own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from gpudev.cli.errors import ERROR
from gpudev.cli.lazy import Entry, LazyGroup
from gpudev.cli.output import (
    Listing,
    Output,
    format_options,
    json_option,
    pass_output,
    print_listing,
    put,
    say,
)
from gpudev.cli.screen import find_width
from gpudev.cli.time_options import parse_hours

if TYPE_CHECKING:
    from gpudev.wire.admin import DeadLetterChanged, UserChanged


command = LazyGroup(
    {
        "users": Entry("admin:users", "List users; disable and enable one."),
        "usage": Entry("admin:usage", "Report who used what, and what it cost."),
        "audit": Entry("admin:audit", "Read the audit log; verify that it is unchanged."),
        "nodes": Entry("admin_nodes:nodes", "List nodes and what runs on them."),
        "drain": Entry("admin_nodes:drain", "Take a node out of service; tell the owners."),
        "undrain": Entry("admin_nodes:undrain", "Put a drained node back into service."),
        "disks": Entry("admin:disks", "Check disks against their storage."),
        "dead-letters": Entry("admin:dead_letters", "List messages that were given up; retry or drop one."),
        "simulate": Entry("admin_simulate", "Replay weeks of requests, and compare."),
    },
    {},
    name="admin",
    help="What admins do. The server's settings say who is one.",
)


@click.group("users", invoke_without_command=True)
@format_options
@pass_output
@click.pass_context
def users(context: click.Context, output: Output) -> None:
    """List users; disable and enable one."""
    if context.invoked_subcommand is not None:
        return
    from gpudev.cli.render.admin import format_users
    from gpudev.cli.render.times import read_now
    from gpudev.client import session

    with session.connect() as client:
        answer = client.admin.list_users()
    names = tuple(user.username for user in answer.users)
    print_listing(Listing(answer, names, format_users(answer.users, read_now(), find_width())), output.format)


@users.command("disable")
@click.argument("name")
@json_option
@pass_output
def disable(output: Output, name: str) -> None:
    """Lock a user out: all keys end at once, and no login gives another.

    Dev servers of the user run on; end them with gpu-dev cancel.
    """
    from gpudev.client import session

    with session.connect() as client:
        _print_change(client.admin.disable_user(name), output)


@users.command("enable")
@click.argument("name")
@json_option
@pass_output
def enable(output: Output, name: str) -> None:
    """Let a user in again."""
    from gpudev.client import session

    with session.connect() as client:
        _print_change(client.admin.enable_user(name), output)


def _print_change(changed: UserChanged | DeadLetterChanged, output: Output) -> None:
    from gpudev.cli.render.data import format_json

    put(format_json(changed) if output.as_json else changed.message)


_DAY = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"])


@click.command("usage")
@click.option("--from", "begin", type=_DAY, help="First day, UTC; left out: 30 days ago.")
@click.option("--to", "end", type=_DAY, help="Up to this day, UTC; left out: now.")
@click.option("--by", type=click.Choice(["user", "type", "day"]), default="user", show_default=True)
@click.option("--csv", "as_csv", is_flag=True, help="Comma-separated values.")
@format_options
@pass_output
def usage(output: Output, begin: datetime | None, end: datetime | None, by: str, *, as_csv: bool) -> None:
    """Report who used what: GPU-hours, waits, idle share, early releases, cost."""
    from gpudev.cli.render.admin import format_csv, format_usage_table
    from gpudev.client import session

    with session.connect() as client:
        table = client.admin.report_usage(begin, end, by)
    if as_csv:
        put(format_csv(table))
        return
    keys = tuple(row.key for row in table.rows)
    print_listing(Listing(table, keys, format_usage_table(table, find_width())), output.format)


MAX_LIMIT = 500


def _parse_since(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """A length of time before now, or a moment in the zone of this machine unless it has its own."""
    if value is None:
        return None
    try:
        return (datetime.now(UTC) - timedelta(hours=parse_hours(value))).isoformat()
    except (ValueError, OverflowError):
        pass
    try:
        return datetime.fromisoformat(value).astimezone().isoformat()
    except (ValueError, OverflowError):
        message = f'"{value}" is not a time. Write it like 2h, 3d or 2026-03-01T12:00.'
        raise click.BadParameter(message, context, parameter) from None


@click.group("audit", invoke_without_command=True)
@click.option("--user", metavar="NAME", help="Only what this user did.")
@click.option("--action", metavar="WORD", help="Only this action, for example submit.")
@click.option("--since", metavar="TIME", callback=_parse_since, help="2h, 3d or 2026-03-01T12:00.")
@click.option("--before", type=click.IntRange(1), metavar="NUMBER", help="Only entries before this one.")
@click.option("--limit", type=click.IntRange(1, MAX_LIMIT), default=50, show_default=True)
@format_options
@pass_output
@click.pass_context
def audit(
    context: click.Context,
    output: Output,
    *,
    user: str | None,
    action: str | None,
    since: str | None,
    before: int | None,
    limit: int,
) -> None:
    """Read the audit log, newest first; verify that it is unchanged."""
    if context.invoked_subcommand is not None:
        return
    from gpudev.cli.render.admin import format_audit
    from gpudev.cli.render.times import read_now
    from gpudev.client import session

    with session.connect() as client:
        page = client.admin.read_audit(user=user, action=action, since=since, before=before, limit=limit)
    numbers = tuple(str(entry.entry_id) for entry in page.entries)
    table = format_audit(page.entries, read_now(), find_width())
    remark = "Nothing was written that fits."
    print_listing(Listing(page, numbers, table, remark, is_empty=not numbers), output.format)
    if page.next_before is not None:
        say(f"There may be more. See it with --before {page.next_before}.")


@audit.command("verify")
@click.option("--anchor", metavar="NUMBER:HASH", help="A seal that was noted earlier must still be there.")
@json_option
@pass_output
@click.pass_context
def verify(context: click.Context, output: Output, anchor: str | None) -> None:
    """Recompute the whole chain. Exit code 1 if anything was changed, removed or added."""
    from gpudev.cli.render.admin import format_verification
    from gpudev.cli.render.data import format_json
    from gpudev.client import session

    with session.connect() as client:
        found = client.admin.verify_audit(anchor)
    put(format_json(found) if output.as_json else format_verification(found))
    if not found.is_intact:
        context.exit(ERROR)


@click.group("disks")
def disks() -> None:
    """Look after the disks of all users."""


@disks.command("check")
@json_option
@pass_output
@click.pass_context
def check(context: click.Context, output: Output) -> None:
    """Print how disks and their storage differ. Nothing is touched; exit code 1 if they do."""
    from gpudev.cli.render.admin import format_drift
    from gpudev.cli.render.data import format_json
    from gpudev.client import session

    with session.connect() as client:
        drift = client.admin.check_disks()
    put(format_json(drift) if output.as_json else format_drift(drift))
    if drift.changes or drift.remarks or drift.problems:
        context.exit(1)


@click.group("dead-letters", invoke_without_command=True)
@format_options
@pass_output
@click.pass_context
def dead_letters(context: click.Context, output: Output) -> None:
    """List messages that were given up, with their errors; retry or drop one."""
    if context.invoked_subcommand is not None:
        return
    from gpudev.cli.render.admin import format_dead_letters
    from gpudev.cli.render.times import read_now
    from gpudev.client import session

    with session.connect() as client:
        answer = client.dead_letters.list()
    names = tuple(letter.letter_id for letter in answer.dead_letters)
    shown = format_dead_letters(answer.dead_letters, read_now(), find_width())
    print_listing(Listing(answer, names, shown), output.format)


@dead_letters.command("retry")
@click.argument("letter_id", metavar="ID")
@json_option
@pass_output
def retry(output: Output, letter_id: str) -> None:
    """Send a dead letter again."""
    from gpudev.client import session

    with session.connect() as client:
        _print_change(client.dead_letters.retry(letter_id), output)


@dead_letters.command("drop")
@click.argument("letter_id", metavar="ID")
@json_option
@pass_output
def drop(output: Output, letter_id: str) -> None:
    """Delete a dead letter."""
    from gpudev.client import session

    with session.connect() as client:
        _print_change(client.dead_letters.drop(letter_id), output)
