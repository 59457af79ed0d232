"""`gpu-dev admin audit`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from gpudev.cli.durations import parse_hours
from gpudev.cli.errors import ERROR
from gpudev.cli.output import Output, format_options, json_option, pass_output, put, say
from gpudev.cli.screen import find_width

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
def command(
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
    from gpudev.cli.listing import Listing, print_listing
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


@command.command("verify")
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
