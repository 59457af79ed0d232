"""Which reservation a command means when none is named."""

from __future__ import annotations

from gpudev.client import session, ssh
from gpudev.client.errors import NotFound, Usage
from gpudev.client.session import Client
from gpudev.wire.jobs import JobDetail


def get_only_active(client: Client) -> JobDetail:
    """The only active one; if there is none, the newest that lives, for the caller to say where it stands."""
    live = client.list(statuses=session.LIVE).jobs
    active = [job for job in live if job.status == "active"]
    if len(active) == 1:
        return active[0]
    if active:
        choices = ", ".join(f"{ssh.id8(job.job_id)} ({job.name})" for job in active)
        raise Usage(f"You have {len(active)} active reservations.", hint=f"Name one of {choices}.")
    if live:
        return live[0]
    raise NotFound("You have no active reservation.", hint="Ask for GPUs with: gpu-dev reserve")
