"""Giving a reservation more time, as `extend` and `edit --extend` do it."""

from __future__ import annotations

from gpudev.cli.output import Output
from gpudev.cli.render.data import format_json
from gpudev.cli.render.times import format_wait, read_now
from gpudev.client.session import Client


def extend(client: Client, reservation: str, hours: float, output: Output, *, wait: bool) -> str:
    """What to print of it."""
    asked = client.extend(reservation, hours)
    if wait:
        client.wait_for_operation(asked.operation_id)
    job = client.get(asked.job_id)
    if output.as_json:
        return format_json(job)
    if not wait or job.expires_at is None:
        return asked.message
    return f"{job.name} ends {format_wait(job.expires_at, read_now())}."
