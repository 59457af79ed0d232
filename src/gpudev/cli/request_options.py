"""The options by which `reserve` and `submit` say what they ask for: fields of `SubmitRequest`, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import click

from gpudev.cli.completion import complete_with
from gpudev.cli.time_options import hours_option

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
NO_DISK = "none"
"""In place of the name of a disk: a home that is not kept."""
Fields = dict[str, Any]
"""Fields of a `SubmitRequest` that were typed, without those of `Size`."""


class Size(NamedTuple):
    """How much was asked for on the command line; None was not said."""

    gpu_type: str | None
    gpus: int | None
    hours: float | None


def take_size(context: click.Context, given: Fields) -> Size:
    """Take it out of what was typed."""
    gpu_type, gpus, hours, length = (given.pop(name) for name in ("gpu_type", "gpus", "hours", "length"))
    if hours is not None and length is not None:
        raise click.UsageError("--hours and --for say the same: give one of them.", context)
    return Size(gpu_type, gpus, length if hours is None else hours)


def take_fields(given: Fields) -> Fields:
    """What was typed of the rest; the server has the defaults for what was not."""
    return {name: value for name, value in given.items() if value is not None}


def request_options(*, hours_help: str, disk_help: str) -> Callable[[Decorated], Decorated]:
    options = (
        click.option("-g", "--gpus", type=int, help="How many GPUs.  [default: 1]"),
        click.option(
            "-t",
            "--gpu-type",
            metavar="TYPE",
            shell_complete=complete_with("types"),
            help="Which kind; gpu-dev avail lists them.",
        ),
        click.option("-H", "--hours", type=float, help=hours_help),
        click.option(
            "--for", "length", metavar="TIME", callback=hours_option, help="The same, as 2h30m or 90m."
        ),
        click.option("-n", "--name", help="A name of your own for it."),
        pairs_option("--env", "env_vars", help="Set this there. Repeatable."),
        click.option(
            "-d",
            "--distributed",
            is_flag=True,
            default=None,
            help="The GPUs are those of several whole nodes.",
        ),
        click.option(
            "--dockerimage",
            "image",
            metavar="NAME",
            help="An image of your own, where the cluster can run it.",
        ),
        click.option(
            "--disk", "disk_name", metavar="NAME|none", shell_complete=complete_with("disks"), help=disk_help
        ),
    )

    def decorate(command: Decorated) -> Decorated:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def pairs_option(*names: str, help: str) -> Callable[[Decorated], Decorated]:  # noqa: A002 - as click calls it
    return click.option(*names, metavar="K=V", multiple=True, callback=_parse_pairs, help=help)


def _parse_pairs(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str] | None:
    pairs = [value.partition("=") for value in values]
    for name, separator, _ in pairs:
        if not separator or not name:
            raise click.BadParameter(f'"{name}" has no value. Write NAME=VALUE.', context, parameter)
    return {name: value for name, _, value in pairs} or None
