"""The request for GPUs as it is sent from this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypedDict

from gpudev import __version__
from gpudev.client.config import Surroundings
from gpudev.client.ssh_keys import collect_public_keys
from gpudev.wire.jobs import SubmitRequest


class Options(TypedDict, total=False):
    """The keyword arguments of `gpudev.reserve` that may be left out."""

    name: str | None
    """A name of one's own: lower-case letters, digits and dashes."""
    disk: str | None
    """The disk that is the home, made if it is new; `none` keeps nothing. Left out: the disk `default`."""
    disk_size_gb: int | None
    """Size of a disk that is made."""
    env: Mapping[str, str]
    """Environment variables there."""
    image: str | None
    """A container image of one's own, where the cluster can run it."""
    distributed: bool
    """The GPUs are those of several whole nodes."""
    start_at: datetime | None
    """Book them for this time instead of asking for them now."""
    node_labels: Mapping[str, str]
    """Only on nodes with these labels, from the operator's list."""


def build_request(gpu_type: str, gpus: int, hours: float, options: Options) -> SubmitRequest:
    """What a script asks for."""
    return SubmitRequest(
        gpu_type=gpu_type,
        gpu_count=gpus,
        duration_hours=hours,
        name=options.get("name"),
        image=options.get("image"),
        disk_name=options.get("disk"),
        disk_size_gb=options.get("disk_size_gb"),
        distributed=options.get("distributed") or None,
        start_at=options.get("start_at"),
        node_labels=dict(options.get("node_labels", {})) or None,
        env_vars=dict(options.get("env", {})),
    )


def complete_request(request: SubmitRequest, surroundings: Surroundings) -> SubmitRequest:
    """With every public key of the person at this machine; one is made if there is none."""
    keys = list(collect_public_keys(surroundings))
    return replace(request, ssh_public_keys=keys, client_version=__version__)
