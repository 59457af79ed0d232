"""The environment and the greeting of a dev server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from gpudev.adapters.local.allotment import Given, draw_up
from gpudev.adapters.local.devserver.environment import Account, build_environment, compose_greeting
from gpudev.adapters.local.gpus import LocalGpu
from gpudev.adapters.local.record import Record
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.domain.names import NodeName
from gpudev.domain.server import ServerSpec
from tests.support.local_cluster import make_spec

ACCOUNT = Account("dev", "/home/dev", "/workspace", "/bin/bash")
SIMULATED = (LocalGpu("simulated-t4-0-0"), LocalGpu("simulated-t4-0-1"))
REAL = (LocalGpu("GPU-1", ("/dev/nvidia0",), is_simulated=False),)


def record_of(spec: ServerSpec, gpus: tuple[LocalGpu, ...] = SIMULATED) -> Record:
    return Record(spec, "uid", is_placed=True, gpus=gpus)


def test_just_its_own_gpus_are_named() -> None:
    environment = build_environment(record_of(make_spec(gpus=2)), ACCOUNT, cores=8)
    assert environment["CUDA_VISIBLE_DEVICES"] == "simulated-t4-0-0,simulated-t4-0-1"
    assert environment["NVIDIA_VISIBLE_DEVICES"] == "simulated-t4-0-0,simulated-t4-0-1"


@pytest.mark.parametrize("gpus, is_simulated", [(SIMULATED, "1"), (REAL, "0"), ((), "0")])
def test_it_says_whether_the_gpus_are_simulated(gpus: tuple[LocalGpu, ...], is_simulated: str) -> None:
    environment = build_environment(record_of(make_spec(), gpus), ACCOUNT, cores=8)
    assert environment["GPU_DEV_SIMULATED"] == is_simulated


def test_what_the_user_gives_replaces_defaults_and_nothing_of_ours() -> None:
    spec = make_spec(OMP_NUM_THREADS="3", LANG="de_DE.UTF-8", GPU_DEV_USER="eve", CUDA_VISIBLE_DEVICES="0")
    environment = build_environment(record_of(spec), ACCOUNT, cores=8)
    assert (environment["OMP_NUM_THREADS"], environment["LANG"]) == ("3", "de_DE.UTF-8")
    assert environment["GPU_DEV_USER"] == "ada"
    assert environment["CUDA_VISIBLE_DEVICES"].startswith("simulated-")


@pytest.mark.parametrize("cores, threads", [(4, "4"), (64, "36")])
def test_threads_fit_the_share_and_the_machine(cores: int, threads: str) -> None:
    spec = replace(make_spec(gpus=2), share=DEFAULT_CATALOGUE.get("t4").share_of(2))
    assert build_environment(record_of(spec), ACCOUNT, cores)["OMP_NUM_THREADS"] == threads


@pytest.mark.parametrize(
    "length, words",
    [
        (timedelta(minutes=5), " 5 min "),
        (timedelta(hours=2), " 2 h "),
        (timedelta(hours=1.5), " 1 h 30 min "),
    ],
)
def test_the_greeting_says_how_long(length: timedelta, words: str) -> None:
    record = record_of(replace(make_spec(), duration=length))
    assert words in compose_greeting(record, ACCOUNT, Isolation.BUBBLEWRAP)


def test_the_greeting_names_the_gpus_and_calls_them_what_they_are() -> None:
    simulated = compose_greeting(record_of(make_spec(gpus=2)), ACCOUNT, Isolation.NONE)
    assert "2 simulated t4 on t4-0; no real GPU is behind them" in simulated
    assert "NOT isolated" in simulated
    real = compose_greeting(record_of(make_spec(), REAL), ACCOUNT, Isolation.BUBBLEWRAP)
    assert "1 t4 on t4-0\n" in real
    spec = make_spec(gpus=0, node=NodeName("cpu-x86-0"))
    assert "none (cpu-x86 on cpu-x86-0)" in compose_greeting(record_of(spec, ()), ACCOUNT, Isolation.NONE)


def gang_member(rank: int, env: Mapping[str, str] | None = None) -> Record:
    spec = make_spec(gpus=8, nodes=(NodeName("a100-0"), NodeName("a100-1")))
    spec = replace(spec, env_vars=env or {})
    gpus = tuple((LocalGpu(f"simulated-a100-{node}-0"),) for node in (0, 1))
    return draw_up(spec, Given(gpus), (30001, 30002))[rank]


def test_a_member_of_a_gang_knows_its_rank_and_the_gpus_of_its_own_node() -> None:
    member = gang_member(1)
    environment = build_environment(member, ACCOUNT, cores=8)
    name = member.spec.name
    assert (environment["RANK"], environment["WORLD_SIZE"], environment["MASTER_PORT"]) == ("1", "2", "29500")
    assert environment["MULTINODE_HOSTS"] == f"{name},{name}-1"
    assert environment["CUDA_VISIBLE_DEVICES"] == "simulated-a100-1-0"
    assert (environment["GPU_DEV_NODE"], environment["GPU_DEV_GPU_COUNT"]) == ("a100-1", "4")


def test_the_port_of_the_master_may_be_chosen_and_nothing_else_of_a_gang() -> None:
    environment = build_environment(gang_member(0, {"MASTER_PORT": "1234", "RANK": "9"}), ACCOUNT, cores=8)
    assert (environment["MASTER_PORT"], environment["RANK"]) == ("1234", "0")


def test_a_server_of_one_node_knows_of_no_gang() -> None:
    environment = build_environment(record_of(make_spec()), ACCOUNT, cores=8)
    assert not {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "MULTINODE_HOSTS"} & environment.keys()


def test_the_greeting_of_a_member_names_the_others() -> None:
    member = gang_member(1)
    greeting = compose_greeting(member, ACCOUNT, Isolation.BUBBLEWRAP)
    assert "4 simulated a100 on a100-1" in greeting
    assert f"rank 1 of 2; ssh goes to {member.spec.name}\n" in greeting
    assert "Gang" not in compose_greeting(record_of(make_spec()), ACCOUNT, Isolation.BUBBLEWRAP)


def test_nothing_in_a_greeting_acts_on_a_terminal() -> None:
    spec = replace(make_spec(), reservation_name="x\x1b[2J", username="\u202eada", notice="a\x9bb\nc")
    greeting = compose_greeting(record_of(spec), ACCOUNT, Isolation.NONE)
    assert [line for line in greeting.splitlines() if not line.isprintable()] == []
    assert greeting.startswith("gpu-dev: x?[2J ")
