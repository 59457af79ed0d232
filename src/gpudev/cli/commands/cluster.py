"""The cluster as everybody sees it: `gpu-dev avail`, `queue` and `status`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gpudev.cli.completion import complete_with
from gpudev.cli.output import (
    Listing,
    Output,
    examples,
    format_listing,
    format_options,
    json_option,
    names_of,
    pass_output,
    print_listing,
    put,
)
from gpudev.cli.screen import find_width

if TYPE_CHECKING:
    from gpudev.client.session import Client


@click.command(
    "avail",
    epilog=examples(
        "gpu-dev avail --watch",
        "gpu-dev avail -o json",
    ),
)
@click.option("--watch", "watched", is_flag=True, help="Show it again whenever it changes, until Ctrl-C.")
@format_options
@pass_output
def avail(output: Output, *, watched: bool) -> None:
    """Show which GPUs are free, and how long the others take.

    AT ONCE is the most GPUs that one reservation can get right now; WAITING counts requests in the queue.
    Simulated GPUs are called so: they do not exist.
    """
    from gpudev.client import session
    from gpudev.client.config import read_surroundings

    surroundings = read_surroundings()
    with session.connect(surroundings) as client:
        if watched:
            from gpudev.cli.live_listing import watch

            watch(lambda: format_listing(_list_types(client), output.format), surroundings)
        print_listing(_list_types(client), output.format)


def _list_types(client: Client) -> Listing:
    from gpudev.cli.render.cluster import format_availability

    answer = client.availability()
    table = format_availability(answer.availability.values(), find_width())
    return Listing(answer, tuple(answer.availability), table)


@click.command(
    "queue", epilog=examples("gpu-dev queue", "gpu-dev queue -t h100 --watch", "gpu-dev queue --accuracy")
)
@click.option(
    "-t",
    "--gpu-type",
    metavar="TYPE",
    shell_complete=complete_with("types"),
    help="Only those who wait for this type.",
)
@click.option("--accuracy", is_flag=True, help="How far the forecasts of the last four weeks were off.")
@click.option("--watch", "watched", is_flag=True, help="Show it again whenever it changes, until Ctrl-C.")
@format_options
@pass_output
def queue(output: Output, *, gpu_type: str | None, accuracy: bool, watched: bool) -> None:
    """Show who waits for which GPUs, in the order in which they came.

    A start is a promise: it may come earlier, and a small request may start before a large one that came
    first, where that makes nobody late. Yours have their id and name; why they wait is told by gpu-dev show
    ID. A start that is not known yet depends on GPUs that come back at no known time. LIKELY is when it will
    probably be, eight times in ten, learned from those who waited before; empty until enough is known.
    """
    from gpudev.client import session
    from gpudev.client.config import read_surroundings

    surroundings = read_surroundings()
    with session.connect(surroundings) as client:
        if accuracy:
            print_listing(_list_accuracy(client), output.format)
            return
        if watched:
            from gpudev.cli.live_listing import watch

            watch(lambda: format_listing(_list_queue(client, gpu_type), output.format), surroundings)
        print_listing(_list_queue(client, gpu_type), output.format)


def _list_queue(client: Client, gpu_type: str | None) -> Listing:
    from gpudev.cli.render.cluster import format_queue, only_type
    from gpudev.cli.render.times import read_now

    answer = client.queue()
    chosen = only_type(answer, gpu_type.lower()) if gpu_type else answer
    own = names_of(entry.name for line in chosen.queue.values() for entry in line)
    table = format_queue(chosen, read_now(), find_width())
    return Listing(chosen, own, table, "Nobody waits.", is_empty=not chosen.total)


def _list_accuracy(client: Client) -> Listing:
    from gpudev.cli.render.cluster import format_accuracy

    answer = client.accuracy()
    remark = "Nobody has waited and started yet."
    return Listing(
        answer, tuple(answer.accuracy), format_accuracy(answer), remark, is_empty=not answer.accuracy
    )


@click.command("status")
@json_option
@pass_output
def status(output: Output) -> None:
    """Show the whole cluster at a glance, and what one should know of it."""
    from gpudev.cli.render.cluster import format_status
    from gpudev.cli.render.data import format_json
    from gpudev.client import session

    with session.connect() as client:
        status = client.status()
    put(format_json(status) if output.as_json else format_status(status, find_width()))
