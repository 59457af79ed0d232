"""`gpu-dev admin usage`."""

from __future__ import annotations

from datetime import datetime

import click

from gpudev.cli.output import Output, format_options, pass_output, put
from gpudev.cli.screen import find_width

_DAY = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"])


@click.command("usage")
@click.option("--from", "begin", type=_DAY, help="First day, UTC; left out: 30 days ago.")
@click.option("--to", "end", type=_DAY, help="Up to this day, UTC; left out: now.")
@click.option("--by", type=click.Choice(["user", "type", "day"]), default="user", show_default=True)
@click.option("--csv", "as_csv", is_flag=True, help="Comma-separated values.")
@format_options
@pass_output
def command(output: Output, begin: datetime | None, end: datetime | None, by: str, *, as_csv: bool) -> None:
    """Report who used what: GPU-hours, waits, idle share, early releases, cost."""
    from gpudev.cli.listing import Listing, print_listing
    from gpudev.cli.render.reports import format_csv, format_usage_table
    from gpudev.client import session

    with session.connect() as client:
        table = client.admin.report_usage(begin, end, by)
    if as_csv:
        put(format_csv(table))
        return
    keys = tuple(row.key for row in table.rows)
    print_listing(Listing(table, keys, format_usage_table(table, find_width())), output.format)
