"""Which reservation a command means when none is named: the only one, or the one that a person chooses."""

from __future__ import annotations

from collections.abc import Sequence

from gpudev.cli.screen import can_ask
from gpudev.client import ssh
from gpudev.client.errors import NotFound, Usage
from gpudev.client.session import Client
from gpudev.texts.vocabulary import LIVE, Status
from gpudev.wire.jobs import JobDetail


def get_meant(client: Client, given: str | None) -> JobDetail:
    """Of all that live: the named one, the only one, or the chosen one."""
    if given:
        return client.get(given)
    live = client.list(statuses=LIVE).jobs
    if not live:
        raise NotFound("You have no reservation.", hint="Ask for GPUs with: gpu-dev reserve")
    return _choose(live, "live")


def get_active(client: Client, given: str | None) -> JobDetail:
    """Of the active ones; if there is none, the newest that lives, for the caller to say where it stands."""
    if given:
        return client.get(given)
    live = client.list(statuses=LIVE).jobs
    active = [job for job in live if job.status == Status.ACTIVE]
    if active:
        return _choose(active, "active")
    if live:
        return live[0]
    raise NotFound("You have no active reservation.", hint="Ask for GPUs with: gpu-dev reserve")


def choose_several(jobs: Sequence[JobDetail], question: str) -> Sequence[JobDetail]:
    """Some of them, by a person; the only one is not asked about."""
    from gpudev.cli.terminal.prompts import ask_several

    if len(jobs) <= 1:
        return jobs
    header, *rows = _list_rows(jobs)
    return [jobs[index] for index in ask_several(question, rows, header=header)]


def _choose(jobs: Sequence[JobDetail], word: str) -> JobDetail:
    if len(jobs) == 1:
        return jobs[0]
    if not can_ask():
        choices = ", ".join(f"{ssh.id8(job.job_id)} ({job.name})" for job in jobs)
        raise Usage(f"You have {len(jobs)} {word} reservations.", hint=f"Name one of {choices}.")
    from gpudev.cli.terminal.prompts import ask_one

    header, *rows = _list_rows(jobs)
    return jobs[ask_one("Which reservation?", rows, header=header)]


def _list_rows(jobs: Sequence[JobDetail]) -> list[str]:
    from gpudev.cli.render.reservations import format_list
    from gpudev.cli.render.times import read_now

    return format_list(jobs, read_now()).splitlines()
