"""`gpu-dev avail`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from gpudev.cli.output import Output, format_options, pass_output, put

if TYPE_CHECKING:
    from gpudev.wire.cluster import AvailabilityResponse

_EVERY_SECONDS = 2.0
_CLEAR = "\x1b[H\x1b[2J"


@click.command("avail")
@click.option("--watch", is_flag=True, help="Show it again whenever it changes, until Ctrl-C.")
@format_options
@pass_output
def command(output: Output, *, watch: bool) -> None:
    """Show which GPUs are free, and how long the others take.

    AT ONCE is the most GPUs that one reservation can get right now; WAITING counts requests in the queue.
    Simulated GPUs are called so: they do not exist.
    """
    from gpudev.client import session

    with session.connect() as client:
        shown = _format(client.availability(), output)
        put(shown)
        while watch:
            time.sleep(_EVERY_SECONDS)
            latest = _format(client.availability(), output)
            if latest != shown:
                put(f"{_CLEAR}{latest}" if sys.stdout.isatty() else latest)
                sys.stdout.flush()
                shown = latest


def _format(answer: AvailabilityResponse, output: Output) -> str:
    from gpudev.cli.render.availability import format_availability
    from gpudev.cli.render.data import format_json, format_yaml

    match output.format:
        case "json":
            return format_json(answer)
        case "yaml":
            return format_yaml(answer)
        case "name":
            return "\n".join(answer.availability)
        case _:
            return format_availability(answer.availability.values())
