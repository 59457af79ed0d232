"""What one can choose from when one reserves, and what was chosen, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from gpudev.cli.choices import starts_now
from gpudev.cli.render.cluster import format_preview
from gpudev.cli.render.reservations import format_gpus
from gpudev.cli.render.table import format_fields, format_table
from gpudev.cli.render.times import Now, format_hours, format_span
from gpudev.wire.cluster import TypeAvailability
from gpudev.wire.disks import DiskInfo
from gpudev.wire.jobs import SubmitRequest
from gpudev.wire.queue import PreviewResponse


def list_type_rows(offers: Iterable[TypeAvailability]) -> list[str]:
    """A header and one row a type: how many are free, and when one would start."""
    rows = [
        (
            f"{offer.gpu_type} (simulated)" if offer.simulated else offer.gpu_type,
            f"{offer.available} of {offer.total}",
            format_start(offer, 1),
        )
        for offer in offers
    ]
    return format_table(("TYPE", "FREE", "STARTS"), rows, frozenset({1})).splitlines()


def list_size_rows(offer: TypeAvailability, sizes: Sequence[int]) -> list[str]:
    rows = [(str(size), format_start(offer, size)) for size in sizes]
    _, *lines = format_table(("", ""), rows, frozenset({0})).splitlines()
    return lines


def list_disk_rows(default: DiskInfo | None, others: Sequence[DiskInfo]) -> list[str]:
    """In the order in which they are offered: the default disk if it is free, others, a new one, none."""
    own = [f"{disk.disk_name}, {disk.size_gb} GB" for disk in others]
    if default is None:
        own = ["default, made now", *own]
    elif not default.in_use:
        own = [f"default, {default.size_gb} GB", *own]
    return [*own, "a new disk", "none: the home is not kept"]


def format_start(offer: TypeAvailability, gpus: int) -> str:
    """When a request for so many would start, as far as that is known."""
    if starts_now(offer, max(gpus, 1)):
        return "now"
    if not offer.total:
        return "none in service"
    if offer.estimated_wait_minutes and gpus <= 1:
        return f"in about {format_span(timedelta(minutes=offer.estimated_wait_minutes))}"
    return "when there is room"


def format_request(request: SubmitRequest, *, simulated: bool) -> str:
    """`2 x h100 for 4 h`."""
    gpus = format_gpus(request.gpu_type, request.gpu_count, simulated=simulated)
    return f"{gpus} for {format_hours(request.duration_hours)}"


def format_plan(request: SubmitRequest, preview: PreviewResponse, now: Now, *, simulated: bool) -> str:
    """What is about to be asked for, when it would start, and what would start sooner."""
    homes = {None: "the disk default", "none": "not kept"}
    fields = [
        ("GPUs", format_gpus(request.gpu_type, request.gpu_count, simulated=simulated)),
        ("For", format_hours(request.duration_hours)),
        ("Home", homes.get(request.disk_name, f"the disk {request.disk_name}")),
    ]
    return f"{format_fields(fields)}\n{format_preview(preview, now)}"
