"""`gpu-dev cp`: OpenSSH's `scp` with the reservation's own configuration."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

_REMOTE = re.compile(r"([A-Za-z0-9-]+):(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Place:
    """A path here, or on a dev server."""

    path: str
    reservation: str | None = None


def parse_place(text: str) -> Place:
    """`ID:path` is there, unless a file of that name is here."""
    match = _REMOTE.fullmatch(text)
    if match is None or Path(text).exists():
        return Place(text)
    return Place(match[2], match[1])


def find_reservation(places: Sequence[Place]) -> str | None:
    """The one that is copied to or from; None if the places do not make sense together."""
    *sources, target = places
    reservations = {place.reservation for place in sources}
    if len(reservations) != 1 or (target.reservation is None) == (None in reservations):
        return None
    return target.reservation or sources[0].reservation


@click.command("cp")
@click.argument("places", metavar="SOURCE... TARGET", nargs=-1, required=True)
@click.option("--node", metavar="N", type=int, default=0, help="Of several nodes, the one of this rank.")
@click.pass_context
def command(context: click.Context, places: tuple[str, ...], node: int) -> None:
    """Copy files and folders to a dev server, or from it.

    A place there is written ID:PATH, where ID is the id of a reservation, the first characters of it (4 or
    more), or its name, and PATH begins at the home. Folders are copied with all that is in them; into a
    folder that exists already they go with their name, as scp does it. For example: gpu-dev cp train.py src
    train: and gpu-dev cp train:logs/out.txt .
    """
    from gpudev.cli.becoming import become_openssh
    from gpudev.client.dev_server import attach, get_node

    parsed = [parse_place(text) for text in places]
    reservation = find_reservation(parsed) if len(parsed) > 1 else None
    if reservation is None:
        raise click.UsageError("Copy to one dev server or from one: exactly one side is ID:PATH.", context)
    with attach(reservation) as box:
        remote = get_node(box.nodes, node, box.id)
    words = [remote.path(place.path) if place.reservation else _local(place.path) for place in parsed]
    become_openssh(["scp", "-F", str(remote.config), "-r", "-p", "--", *words])


def _local(path: str) -> str:
    """`scp` takes a name with a colon for a host, unless a slash comes first."""
    return path if path.startswith(("/", "./", "../")) else f"./{path}"
