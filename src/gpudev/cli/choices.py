"""Which GPUs a `gpu-dev reserve` means: what was typed, and defaults for the rest. Nobody is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpudev.client.errors import NoCapacity, Usage
from gpudev.wire.cluster import TypeAvailability

DEFAULT_HOURS = 4.0
SIZES = (1, 2, 4, 8, 16)
"""By these GPUs are lent, up to the size of a node."""

Offers = Mapping[str, TypeAvailability]


@dataclass(frozen=True, slots=True)
class Choice:
    gpu_type: str
    gpus: int
    hours: float
    simulated: bool
    disk: str | None = None
    """None leaves it to the server: the default disk, or, while another reservation has that, none."""
    is_answered: bool = False
    """A person was asked for some of it, and is shown the plan before anything is done."""


def choose(gpu_type: str | None, gpus: int | None, hours: float | None, offers: Offers) -> Choice:
    """Without a person to ask: the only type on offer stands for a type that was not given."""
    chosen = gpu_type or get_only_type(offers)
    offer = offers.get(chosen.lower())
    return Choice(
        gpu_type=chosen,
        gpus=default_gpus(offer) if gpus is None else gpus,
        hours=DEFAULT_HOURS if hours is None else hours,
        simulated=offer is not None and offer.simulated,
    )


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
