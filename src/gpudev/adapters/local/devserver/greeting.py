"""What a person reads after logging in."""

from __future__ import annotations

from datetime import timedelta

from gpudev.adapters.local.devserver.environment import Account, is_simulated
from gpudev.adapters.local.record import Record
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.domain.names import id8
from gpudev.domain.server import ServerSpec


def compose_greeting(record: Record, account: Account, isolation: Isolation) -> str:
    spec = record.spec
    return "\n".join(
        [
            f"gpu-dev: {spec.reservation_name} ({id8(spec.reservation_id)}) of {spec.username}",
            f"  GPUs       {_describe_gpus(record)}",
            f"  Length     {_describe_length(spec.duration)} from its start",
            f"  Home       {_describe_home(spec, account)}",
            f"  Scratch    {account.workspace} goes when the reservation ends",
            f"  Isolation  {isolation.sentence}",
            *(["  Root       There is no sudo here."] if isolation is Isolation.BUBBLEWRAP else []),
            *([f"  Note       {spec.notice}"] if spec.notice else []),
            "",
        ]
    )


def _describe_home(spec: ServerSpec, account: Account) -> str:
    if spec.home is None:
        return f"{account.home} is not kept as a disk; the next reservation has its own"
    size = f"{spec.home.size_gb} GB asked for, not enforced here"
    return f'{account.home} is your disk "{spec.home.disk_name}" ({size}); it outlives the reservation'


def _describe_gpus(record: Record) -> str:
    spec = record.spec
    if not spec.gpu_count:
        return f"none ({spec.gpu_type} on {spec.node})"
    kind = "simulated " if is_simulated(record) else ""
    note = "; no real GPU is behind them" if kind else ""
    return f"{spec.gpu_count} {kind}{spec.gpu_type} on {spec.node}{note}"


def _describe_length(length: timedelta) -> str:
    minutes = round(length.total_seconds() / 60)
    hours, rest = divmod(minutes, 60)
    return " ".join(part for part in (f"{hours} h" * bool(hours), f"{rest} min" * bool(rest)) if part)
