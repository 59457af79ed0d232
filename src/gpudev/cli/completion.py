"""What Tab offers for ids, types and disks: the server's answer, kept for a few seconds.

Whoever presses Tab waits for it, so the server has a second to answer. Nothing is said when it does not: a
shell that completes has no place for errors, and the command itself will tell.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from gpudev.texts.vocabulary import LIVE

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from gpudev.client.session import Client

FRESH_SECONDS = 10.0
PATIENCE_SECONDS = 1.0

Words = dict[str, str]
"""What can be typed, and a remark for shells that show one."""
Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def complete_with(what: str) -> Complete:
    """A completion of `reservations`, `types` or `disks`."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        words = find_words(what)
        return [
            CompletionItem(word, help=remark) for word, remark in words.items() if word.startswith(incomplete)
        ]

    return complete


def find_words(what: str) -> Words:
    from gpudev.client.config import find_target, read_surroundings
    from gpudev.client.errors import ClientError
    from gpudev.client.files import read_json_object, write_private

    here = read_surroundings()
    file = here.state_dir / "completion.json"
    try:
        target = find_target(here)
        kept = read_json_object(file).get(f"{target.api_url} {what}")
        if isinstance(kept, dict) and time.time() - kept["at"] < FRESH_SECONDS:
            return {str(word): str(remark) for word, remark in kept["words"].items()}
        words = _ask(what)
        entry = {"at": time.time(), "words": words}
        write_private(file, json.dumps({**read_json_object(file), f"{target.api_url} {what}": entry}))
    except (ClientError, KeyError, TypeError, AttributeError):
        return {}
    return words


def _ask(what: str) -> Words:
    from gpudev.client import session

    readers = {"reservations": _read_reservations, "types": _read_types, "disks": _read_disks}
    with session.connect(answer_seconds=PATIENCE_SECONDS) as client:
        return readers[what](client)


def _read_reservations(client: Client) -> Words:
    from gpudev.client.ssh import id8

    jobs = client.list(statuses=LIVE).jobs
    by_name = {job.name: f"{job.status}, {job.gpu_count} x {job.gpu_type}" for job in jobs}
    return {**by_name, **{id8(job.job_id): f"{job.status}, {job.name}" for job in jobs}}


def _read_types(client: Client) -> Words:
    offers = client.availability().availability.values()
    return {offer.gpu_type: f"{offer.available} of {offer.total} free" for offer in offers}


def _read_disks(client: Client) -> Words:
    return {disk.disk_name: f"{disk.size_gb} GB, {disk.state}" for disk in client.disks.list().disks}
