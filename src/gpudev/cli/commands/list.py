"""`gpu-dev list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gpudev.cli.output import Output, format_options, pass_output, put, say

if TYPE_CHECKING:
    from gpudev.wire.jobs import JobList

STATUSES = ("pending", "queued", "preparing", "active", "expired", "cancelled", "failed")
MAX_LIMIT = 500


def _parse_statuses(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    wanted = tuple(word.strip().lower() for word in value.split(",")) if value else ()
    for word in wanted:
        if word not in STATUSES:
            message = f'"{word}" is not a status. There are {", ".join(STATUSES)}.'
            raise click.BadParameter(message, context, parameter)
    return wanted


@click.command("list")
@click.option("--status", "statuses", callback=_parse_statuses, help="Only these, for example active,queued.")
@click.option("--all", "everything", is_flag=True, help="Those that are over, too.")
@click.option("--user", metavar="NAME|all", help="For admins: those of another user, or of all.")
@click.option("--limit", type=click.IntRange(1, MAX_LIMIT), default=50, show_default=True)
@format_options
@pass_output
def command(
    output: Output, *, statuses: tuple[str, ...], everything: bool, user: str | None, limit: int
) -> None:
    """List your reservations, newest first: those that are not over, unless you ask for others."""
    from gpudev.client import session, ssh
    from gpudev.client.config import read_surroundings

    surroundings = read_surroundings()
    is_plain = not statuses and not everything
    with session.connect(surroundings) as client:
        page = client.list(statuses=session.LIVE if is_plain else statuses, user=user, limit=limit)
    if is_plain and user is None and len(page.jobs) == page.total:
        live_ids = [job.job_id for job in page.jobs]
        ssh.delete_stale_configs(surroundings, client.target.api_url, live_ids)
    _print_page(page, output, with_users=user is not None)


def _print_page(page: JobList, output: Output, *, with_users: bool) -> None:
    from gpudev.cli.render.data import format_json, format_yaml
    from gpudev.cli.render.reservations import format_list, format_names
    from gpudev.cli.render.times import read_now

    if output.format == "json":
        put(format_json(page))
    elif output.format == "yaml":
        put(format_yaml(page))
    elif not page.jobs:
        say("No reservations. Ask for GPUs with: gpu-dev reserve")
    elif output.format == "name":
        put(format_names(page.jobs))
    else:
        put(format_list(page.jobs, read_now(), with_users=with_users))
    if len(page.jobs) < page.total:
        say(f"{len(page.jobs)} of {page.total} are shown. See more with --limit {MAX_LIMIT}.")
