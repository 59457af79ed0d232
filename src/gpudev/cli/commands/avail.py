"""`gpu-dev avail`."""

from __future__ import annotations

import click

from gpudev.cli.output import Output, format_options, pass_output, put


@click.command("avail")
@format_options
@pass_output
def command(output: Output) -> None:
    """Show which GPUs are free, and how long the others take.

    AT ONCE is the most GPUs that one reservation can get right now; WAITING counts requests in the queue.
    Simulated GPUs are called so: they do not exist.
    """
    from gpudev.cli.render.availability import format_availability
    from gpudev.cli.render.data import format_json, format_yaml
    from gpudev.client import session

    with session.connect() as client:
        answer = client.availability()
    match output.format:
        case "json":
            put(format_json(answer))
        case "yaml":
            put(format_yaml(answer))
        case "name":
            put("\n".join(answer.availability))
        case _:
            put(format_availability(answer.availability.values()))
