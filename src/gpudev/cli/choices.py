"""Which GPUs a `gpu-dev reserve` means: what was typed, the defaults, and questions for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import click

from gpudev.cli.output import say
from gpudev.cli.render.availability import format_availability
from gpudev.client.errors import NoCapacity, Usage
from gpudev.wire.cluster import TypeAvailability

DEFAULT_HOURS = 4.0

Offers = Mapping[str, TypeAvailability]


@dataclass(frozen=True, slots=True)
class Choice:
    gpu_type: str
    gpus: int
    hours: float
    simulated: bool


def choose(gpu_type: str | None, gpus: int | None, hours: float | None, offers: Offers) -> Choice:
    """Without a person to ask: the only type on offer stands for a type that was not given."""
    chosen = gpu_type or _get_only_type(offers)
    offer = offers.get(chosen.lower())
    return Choice(
        gpu_type=chosen,
        gpus=default_gpus(offer) if gpus is None else gpus,
        hours=DEFAULT_HOURS if hours is None else hours,
        simulated=offer is not None and offer.simulated,
    )


def ask_and_choose(gpus: int | None, hours: float | None, offers: Offers) -> Choice:
    """With a person at a terminal and several types on offer."""
    say(format_availability(offers.values()))
    gpu_type = click.prompt("GPU type", type=click.Choice(list(offers)), err=True, show_choices=False)
    if gpus is None:
        gpus = click.prompt("How many GPUs", type=int, default=default_gpus(offers.get(gpu_type)), err=True)
    if hours is None:
        hours = click.prompt("For how many hours", type=float, default=DEFAULT_HOURS, err=True)
    return choose(gpu_type, gpus, hours, offers)


def default_gpus(offer: TypeAvailability | None) -> int:
    """One; none of a type whose machines have none."""
    return 0 if offer is not None and offer.max_per_node == 0 else 1


def _get_only_type(offers: Offers) -> str:
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
