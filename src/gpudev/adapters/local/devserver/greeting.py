"""What a person reads after logging in."""

from __future__ import annotations

import textwrap
from collections.abc import Collection

from gpudev.adapters.local.devserver.environment import Account, is_simulated
from gpudev.adapters.local.devserver.limits import describe_limits, limits_of
from gpudev.adapters.local.record import Record
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.adapters.local.ssh_port import HOST
from gpudev.domain.audit import make_printable
from gpudev.texts.fact import Fact, fact
from gpudev.texts.sentences import say

_WIDTH = 80
_INDENT = " " * len("  Isolation  ")


def compose_greeting(
    record: Record, account: Account, isolation: Isolation, enforced: Collection[str] = ()
) -> str:
    """`enforced` names the controllers of the server's cgroup, if it has one."""
    spec = record.spec
    has_own_user = isolation is Isolation.BUBBLEWRAP
    limits = describe_limits(limits_of(spec.share), enforced, has_own_user=has_own_user)
    fields = [
        _describe_gpus(record),
        *([_describe_gang(record, isolation)] if record.gang else []),
        fact("greeting_length", length=spec.duration),
        _describe_home(record, account),
        fact("greeting_scratch", workspace=account.workspace),
        _describe_isolation(isolation),
        fact("greeting_limits", limits=limits),
        *([fact("greeting_no_root")] if has_own_user else []),
        *([fact("greeting_notice", notice=spec.notice)] if spec.notice else []),
    ]
    title = fact("greeting_title", name=spec.reservation_name, id=spec.reservation_id, username=spec.username)
    lines = [make_printable(say(field)) for field in fields]
    return "\n".join([make_printable(say(title)), *map(_fold, lines), ""])


def _fold(field: str) -> str:
    """In the width that every terminal has: the greeting is written before anybody's is known."""
    return textwrap.fill(
        field, _WIDTH, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False
    )


def _describe_home(record: Record, account: Account) -> Fact:
    home = record.home
    if home is None:
        return fact("greeting_home", home=account.home)
    return fact("greeting_disk", home=account.home, disk=home.disk_name, size_gb=home.size_gb)


def _describe_gpus(record: Record) -> Fact:
    spec, node = record.spec, record.node
    if not spec.gpu_count:
        return fact("greeting_no_gpus", gpu_type=spec.gpu_type, node=node)
    if is_simulated(record):
        return fact("greeting_simulated_gpus", count=spec.gpus_per_node, gpu_type=spec.gpu_type, node=node)
    return fact("greeting_gpus", count=spec.gpus_per_node, gpu_type=spec.gpu_type, node=node)


def _describe_gang(record: Record, isolation: Isolation) -> Fact:
    names = record.spec.member_names
    others = [name for name in names if name != record.name]
    rank, size = record.rank, len(names)
    if isolation is Isolation.BUBBLEWRAP:
        return fact("greeting_gang", rank=rank, size=size, others=others)
    # There is no file of names of its own without a sandbox.
    return fact("greeting_gang_without_names", rank=rank, size=size, others=others, host=HOST)


def _describe_isolation(isolation: Isolation) -> Fact:
    if isolation is Isolation.BUBBLEWRAP:
        return fact("greeting_isolation", isolation=isolation.told)
    return fact("greeting_without_isolation", isolation=isolation.told)
