"""Which disk a person wants for the home, when the default one is taken."""

from __future__ import annotations

import click

from gpudev.cli.output import say
from gpudev.client.session import Client

DEFAULT_DISK = "default"
NO_DISK = "none"


def ask_for_disk(client: Client) -> str | None:
    """Another disk, a new one, or none; nothing is asked while the default disk can be had."""
    disks = client.disks.list().disks
    default = next((disk for disk in disks if disk.disk_name == DEFAULT_DISK), None)
    if default is None or default.reservation_id is None or not default.in_use:
        return None
    free = [disk.disk_name for disk in disks if not disk.in_use]
    others = f" Free: {', '.join(free)}." if free else ""
    say(f'Your disk "{DEFAULT_DISK}" is attached to reservation {default.reservation_id[:8]}.{others}')
    question = "Disk for this home (a new name makes a new one, none keeps nothing)"
    answer: str = click.prompt(question, default=free[0] if free else NO_DISK, err=True)
    return answer
