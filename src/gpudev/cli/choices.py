"""Which GPUs a command asks for: what was typed, and defaults for the rest. Nobody is asked.

The values become fields of `SubmitRequest`, which is what is sent.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpudev.cli.request_options import Size
from gpudev.client.errors import NoCapacity, Usage
from gpudev.wire.cluster import TypeAvailability
from gpudev.wire.jobs import SubmitRequest

DEFAULT_HOURS = 4.0
SIZES = (1, 2, 4, 8, 16)
"""By these GPUs are lent, up to the size of a node."""

Offers = Mapping[str, TypeAvailability]


def choose(size: Size, offers: Offers) -> SubmitRequest:
    """Without a person to ask: the only type on offer stands for a type that was not given."""
    chosen = size.gpu_type or get_only_type(offers)
    return SubmitRequest(
        gpu_type=chosen,
        gpu_count=default_gpus(offers.get(chosen.lower())) if size.gpus is None else size.gpus,
        duration_hours=DEFAULT_HOURS if size.hours is None else size.hours,
    )


def is_simulated(request: SubmitRequest, offers: Offers) -> bool:
    offer = offers.get(request.gpu_type.lower())
    return offer is not None and offer.simulated


def default_gpus(offer: TypeAvailability | None) -> int:
    """One; none of a type whose machines have none."""
    return 0 if offer is not None and offer.max_per_node == 0 else 1


def list_sizes(offer: TypeAvailability) -> tuple[int, ...]:
    """How many GPUs of this type one reservation can have on one node."""
    return tuple(size for size in SIZES if size <= offer.max_per_node) or (default_gpus(offer),)


def starts_now(offer: TypeAvailability, gpus: int) -> bool:
    return offer.max_reservable > 0 and gpus <= offer.max_reservable


def get_only_type(offers: Offers) -> str:
    names = list(offers)
    if len(names) == 1:
        return names[0]
    if not names:
        raise NoCapacity("No GPU types are on offer.", hint="See the cluster with: gpu-dev status")
    raise Usage(
        f"Which GPU type? There are {', '.join(names)}.",
        hint=f"Add --gpu-type, for example: gpu-dev reserve --gpu-type {names[0]}",
        code="no_gpu_type",
    )
