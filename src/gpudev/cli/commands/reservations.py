"""Reservations as their owner sees them: `gpu-dev list`, `show` and `why`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gpudev.cli.completion import complete_with
from gpudev.cli.output import (
    Listing,
    Output,
    examples,
    format_listing,
    format_options,
    json_option,
    pass_output,
    print_listing,
    put,
    say,
)
from gpudev.cli.screen import find_width
from gpudev.texts.vocabulary import LIVE, Status

if TYPE_CHECKING:
    from gpudev.client.config import Surroundings
    from gpudev.client.session import Client
    from gpudev.wire.jobs import JobList


MAX_LIMIT = 500
NOTHING = "No reservations. Ask for GPUs with: gpu-dev reserve"


def _parse_statuses(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    wanted = tuple(word.strip().lower() for word in value.split(",")) if value else ()
    for word in wanted:
        if word not in list(Status):
            message = f'"{word}" is not a status. There are {", ".join(Status)}.'
            raise click.BadParameter(message, context, parameter)
    return wanted


class Wanted(NamedTuple):
    """Which reservations were asked for."""

    statuses: tuple[str, ...]
    everything: bool
    user: str | None
    limit: int

    @property
    def is_plain(self) -> bool:
        """All of one's own that live."""
        return not self.statuses and not self.everything


@click.command(
    "list",
    epilog=examples(
        "gpu-dev list --watch",
        "gpu-dev list --status active -o name",
    ),
)
@click.option("--status", "statuses", callback=_parse_statuses, help="Only these, for example active,queued.")
@click.option("--all", "everything", is_flag=True, help="Those that are over, too.")
@click.option("--user", metavar="NAME|all", help="For admins: those of another user, or of all.")
@click.option("--limit", type=click.IntRange(1, MAX_LIMIT), default=50, show_default=True)
@click.option("--watch", "watched", is_flag=True, help="Show it again whenever it changes, until Ctrl-C.")
@format_options
@pass_output
def list_reservations(output: Output, /, *, watched: bool, **given: Any) -> None:
    """List your reservations, newest first: those that are not over, unless you ask for others."""
    from gpudev.client import session
    from gpudev.client.config import read_surroundings

    wanted = Wanted(**given)
    surroundings = read_surroundings()
    with session.connect(surroundings) as client:
        if watched:
            from gpudev.cli.live_listing import watch

            watch(lambda: format_listing(_list(wanted, _read(wanted, client)), output.format), surroundings)
        page = _read(wanted, client)
    _delete_stale(wanted, page, client, surroundings)
    print_listing(_list(wanted, page), output.format)
    if len(page.jobs) < page.total:
        say(f"{len(page.jobs)} of {page.total} are shown. See more with --limit {MAX_LIMIT}.")


def _read(wanted: Wanted, client: Client) -> JobList:
    statuses = LIVE if wanted.is_plain else wanted.statuses
    return client.list(statuses=statuses, user=wanted.user, limit=wanted.limit)


def _list(wanted: Wanted, page: JobList) -> Listing:
    from gpudev.cli.render.reservations import format_list
    from gpudev.cli.render.times import read_now

    table = format_list(page.jobs, read_now(), with_users=wanted.user is not None, width=find_width())
    names = tuple(job.name for job in page.jobs)
    return Listing(page, names, table, NOTHING, is_empty=not page.jobs)


def _delete_stale(wanted: Wanted, page: JobList, client: Client, surroundings: Surroundings) -> None:
    """Once all that live are known, the SSH files of the others are of no use."""
    from gpudev.client import ssh

    if wanted.is_plain and wanted.user is None and len(page.jobs) == page.total:
        live_ids = [job.job_id for job in page.jobs]
        ssh.delete_stale_configs(surroundings, client.target.api_url, live_ids)


@click.command(
    "show",
    epilog=examples(
        "gpu-dev show",
        "gpu-dev show train --json",
    ),
)
@click.argument("reservation", metavar="[ID]", required=False, shell_complete=complete_with("reservations"))
@json_option
@pass_output
def show(output: Output, reservation: str | None) -> None:
    """Show everything about one reservation.

    ID is its id, the first characters of it (4 or more), or its name. Without it: your only one that is not
    over, or the one that you choose.
    """
    from gpudev.cli.render.data import format_json
    from gpudev.cli.render.reservations import format_detail, format_usage
    from gpudev.cli.render.times import read_now
    from gpudev.cli.selection import get_meant
    from gpudev.client import session

    with session.connect() as client:
        job = get_meant(client, reservation)
        usage = client.usage(job.job_id) if job.launched_at and not output.as_json else None
    line = format_usage(usage) if usage else None
    put(format_json(job) if output.as_json else format_detail(job, read_now(), usage=line))


@click.command("why", epilog=examples("gpu-dev why", "gpu-dev why train"))
@click.argument("reservation", metavar="[ID]", required=False, shell_complete=complete_with("reservations"))
@json_option
@pass_output
def why(output: Output, reservation: str | None) -> None:
    """Explain why a reservation waits, was slow, ended or failed.

    It is told from the events that were written down: the cause, what happened, where the time went, and
    what to type next. ID is its id, the first characters of it (4 or more), or its name; also of one that
    is over.
    """
    from gpudev.cli.program_name import spell
    from gpudev.cli.render.data import format_json
    from gpudev.cli.render.explain_status import encode_why, format_why
    from gpudev.cli.render.table import fold
    from gpudev.cli.render.times import read_now
    from gpudev.cli.selection import get_meant
    from gpudev.client import session

    with session.connect() as client:
        job = get_meant(client, reservation)
        events = client.list_events(job.job_id)
    now = read_now()
    if output.as_json:
        put(format_json(encode_why(job, events, now)))
    else:
        put(fold(spell(format_why(job, events, now)), find_width()))
