"""What a person reads after logging in."""

from __future__ import annotations

import textwrap
from collections.abc import Collection
from datetime import timedelta

from gpudev.adapters.local.devserver.environment import Account, is_simulated
from gpudev.adapters.local.devserver.limits import describe_limits, limits_of
from gpudev.adapters.local.record import Record
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.adapters.local.ssh_port import HOST
from gpudev.domain.audit import make_printable
from gpudev.domain.names import id8

_WIDTH = 80
_HELP = {Isolation.BUBBLEWRAP: "", Isolation.NONE: " What would help: gpu-dev status"}
_INDENT = " " * len("  Isolation  ")


def compose_greeting(
    record: Record, account: Account, isolation: Isolation, enforced: Collection[str] = ()
) -> str:
    """`enforced` names the controllers of the server's cgroup, if it has one."""
    spec = record.spec
    has_own_user = isolation is Isolation.BUBBLEWRAP
    limits = describe_limits(limits_of(spec.share), enforced, has_own_user=has_own_user)
    fields = [
        f"  GPUs       {_describe_gpus(record)}",
        *([f"  Gang       {_describe_gang(record, isolation)}"] if record.gang else []),
        f"  Length     {_describe_length(spec.duration)} from its start",
        f"  Home       {_describe_home(record, account)}",
        f"  Scratch    {account.workspace} goes when the reservation ends",
        f"  Isolation  {isolation.sentence}{_HELP[isolation]}",
        f"  Limits     {limits}",
        *(["  Root       There is no sudo here."] if isolation is Isolation.BUBBLEWRAP else []),
        *([f"  Note       {spec.notice}"] if spec.notice else []),
    ]
    title = f"gpu-dev: {spec.reservation_name} ({id8(spec.reservation_id)}) of {spec.username}"
    return "\n".join([make_printable(title), *map(_fold, map(make_printable, fields)), ""])


def _fold(field: str) -> str:
    """In the width that every terminal has: the greeting is written before anybody's is known."""
    return textwrap.fill(
        field, _WIDTH, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False
    )


def _describe_home(record: Record, account: Account) -> str:
    home = record.home
    if home is None:
        return f"{account.home} is not kept as a disk; the next reservation has its own"
    size = f"{home.size_gb} GB asked for, not enforced here"
    return f'{account.home} is your disk "{home.disk_name}" ({size}); it outlives the reservation'


def _describe_gpus(record: Record) -> str:
    spec = record.spec
    if not spec.gpu_count:
        return f"none ({spec.gpu_type} on {record.node})"
    kind = "simulated " if is_simulated(record) else ""
    note = "; no real GPU is behind them" if kind else ""
    return f"{spec.gpus_per_node} {kind}{spec.gpu_type} on {record.node}{note}"


def _describe_gang(record: Record, isolation: Isolation) -> str:
    names = record.spec.member_names
    others = [name for name in names if name != record.name]
    words = f"rank {record.rank} of {len(names)}; ssh goes to {', '.join(others)}"
    if isolation is Isolation.BUBBLEWRAP:
        return words
    # There is no file of names of its own without a sandbox.
    return f"{words}. Only ssh, scp and sftp know these names; other programs use {HOST} and $MASTER_PORT"


def _describe_length(length: timedelta) -> str:
    minutes = round(length.total_seconds() / 60)
    hours, rest = divmod(minutes, 60)
    return " ".join(part for part in (f"{hours} h" * bool(hours), f"{rest} min" * bool(rest)) if part)
