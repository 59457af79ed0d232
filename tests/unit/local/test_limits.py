"""What a dev server may use of the machine, as values."""

from __future__ import annotations

import resource
from dataclasses import replace
from fractions import Fraction

import pytest

from gpudev.adapters.local.cgroups import (
    ALL_CONTROLLERS,
    Cgroups,
    Limits,
    choose_rlimits,
    describe_cgroups,
    describe_limits,
    limit_files,
    limits_of,
)
from gpudev.domain.catalogue import Share
from gpudev.texts.sentences import say

UNLIMITED = dict.fromkeys((resource.RLIMIT_CORE, resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC), -1)
LIMITS = Limits(memory_bytes=64 * 1024**3, cpus=6, processes=6144)


@pytest.mark.parametrize(
    "cpus,processes",
    [
        pytest.param(1, 4096, id="few-cores"),
        pytest.param(6, 6144, id="some"),
        pytest.param(192, 32768, id="many"),
        pytest.param(Fraction(1, 2), 4096, id="half-a-core"),
    ],
)
def test_limits_follow_the_share(cpus: int | Fraction, processes: int) -> None:
    limits = limits_of(Share(cpus, cpus, 1, Fraction(3, 2)))
    assert (limits.memory_bytes, limits.cpus, limits.processes) == (1_610_612_736, float(cpus), processes)


def test_rlimits_never_exceed_what_is_there() -> None:
    hard = {**UNLIMITED, resource.RLIMIT_NOFILE: 1024}
    chosen = choose_rlimits(LIMITS, hard, has_own_user=True)
    assert chosen == {
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_NOFILE: (1024, 1024),
        resource.RLIMIT_NPROC: (6144, 6144),
    }


def test_processes_are_not_counted_with_those_of_other_programs() -> None:
    assert resource.RLIMIT_NPROC not in choose_rlimits(LIMITS, UNLIMITED, has_own_user=False)


@pytest.mark.parametrize(
    "enforced,has_own_user,words",
    [
        pytest.param(
            ALL_CONTROLLERS,
            True,
            "64 GiB of memory, 6 CPUs, 6144 processes, 65536 open files",
            id="everything",
        ),
        pytest.param(
            (), True, "6144 processes, 65536 open files; NOT limited: memory, CPU", id="a-sandbox-alone"
        ),
        pytest.param((), False, "65536 open files; NOT limited: memory, CPU, processes", id="nothing"),
    ],
)
def test_what_is_not_limited_is_said(enforced: tuple[str, ...], has_own_user: bool, words: str) -> None:  # noqa: FBT001 - a case of the table
    assert say(describe_limits(LIMITS, enforced, has_own_user=has_own_user)) == words


def test_the_files_of_a_cgroup() -> None:
    assert limit_files(LIMITS, ALL_CONTROLLERS) == {
        "memory.max": "68719476736",
        "cpu.max": "600000 100000",
        "pids.max": "6144",
    }
    assert limit_files(replace(LIMITS, cpus=0.001), ["cpu"]) == {"cpu.max": "1000 100000"}


def test_the_operator_is_told_what_a_cgroup_would_limit(tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.getbasetemp()
    assert "NOT limited by a cgroup: memory, CPU, processes" in describe_cgroups(None)
    assert "Delegate=yes gpu-dev up" in describe_cgroups(None)
    assert "NOT" not in describe_cgroups(Cgroups(root, ALL_CONTROLLERS))
    some = describe_cgroups(Cgroups(root, ("pids",)))
    assert "limited in processes. NOT limited by a cgroup: memory, CPU" in some
