"""What `gpu-dev reserve` asks a person who has not said it: type, count, hours and disk."""

from __future__ import annotations

from collections.abc import Sequence

from gpudev.cli.choices import DEFAULT_HOURS, Offers, choose, get_only_type, list_sizes
from gpudev.cli.output import say
from gpudev.cli.render.offers import list_disk_rows, list_size_rows, list_type_rows
from gpudev.cli.request_options import NO_DISK, Size
from gpudev.cli.terminal.prompts import ask_hours, ask_one, ask_text
from gpudev.wire.cluster import TypeAvailability
from gpudev.wire.disks import DiskInfo
from gpudev.wire.jobs import SubmitRequest

DEFAULT_DISK = "default"


def ask_request(size: Size, offers: Offers) -> SubmitRequest:
    """Ask for what was not typed. What has only one answer is not asked."""
    gpu_type, gpus, hours = size
    chosen = gpu_type or _ask_type(offers)
    offer = offers.get(chosen.lower())
    if gpus is None and offer is not None:
        gpus = _ask_size(offer)
    if hours is None:
        hours = ask_hours("For how many hours (or 2h30m, 90m)", f"{DEFAULT_HOURS:g}")
    return choose(Size(chosen, gpus, hours), offers)


def ask_disk(disks: Sequence[DiskInfo]) -> str | None:
    """The name of a disk, `none`, or None for what the server does when nothing is said."""
    others = [disk for disk in disks if disk.disk_name != DEFAULT_DISK and not disk.in_use]
    default = next((disk for disk in disks if disk.disk_name == DEFAULT_DISK), None)
    is_taken = default is not None and default.in_use
    names = [*([] if is_taken else [DEFAULT_DISK]), *(disk.disk_name for disk in others)]
    rows = list_disk_rows(default, others)
    if default is not None and is_taken:
        say(_tell_of_taken(default))
    at = ask_one("Which disk is your home?", rows)
    if at < len(names):
        return None if names[at] == DEFAULT_DISK else names[at]
    return NO_DISK if at == len(rows) - 1 else ask_text("Name of the new disk")


def _ask_type(offers: Offers) -> str:
    if len(offers) <= 1:
        return get_only_type(offers)
    header, *rows = list_type_rows(offers.values())
    names = list(offers)
    free = next((at for at, name in enumerate(names) if offers[name].available), 0)
    return names[ask_one("Which GPUs?", rows, default=free, header=header)]


def _ask_size(offer: TypeAvailability) -> int:
    """With the type in the question: where there is only one, nothing else has named it."""
    sizes = list_sizes(offer)
    if len(sizes) == 1:
        return sizes[0]
    kind = f"simulated {offer.gpu_type}" if offer.simulated else offer.gpu_type
    return sizes[ask_one(f"How many {kind} GPUs?", list_size_rows(offer, sizes))]


def _tell_of_taken(disk: DiskInfo) -> str:
    holder = f" by reservation {disk.reservation_id[:8]}" if disk.reservation_id else ""
    return f'Your disk "{disk.disk_name}" is in use{holder}.'
