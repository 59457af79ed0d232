"""The table of GPU types, the shares of a node, and what a request for an unknown thing is told."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudev.domain.catalogue import DEFAULT_CATALOGUE, Catalogue, GpuType, Share
from gpudev.domain.errors import Invalid
from tests.support.budgets import QUICK

# The published table, row for row: type, instance, GPUs, vCPU, GiB, GB a GPU, nodes at most, EFA.
TABLE = [
    ("t4", "g4dn.12xlarge", 4, 48, 192, 16, 1, 0),
    ("t4-small", "g4dn.2xlarge", 1, 8, 32, 16, 1, 0),
    ("l4", "g6.12xlarge", 4, 48, 192, 24, 1, 1),
    ("a10g", "g5.12xlarge", 4, 48, 192, 24, 1, 1),
    ("a100", "p4d.24xlarge", 8, 96, 1152, 40, 4, 4),
    ("h100", "p5.48xlarge", 8, 192, 2048, 80, 4, 32),
    ("h200", "p5e.48xlarge", 8, 192, 2048, 141, 4, 32),
    ("b200", "p6-b200.48xlarge", 8, 192, 2048, 180, 4, 8),
    ("cpu-x86", "c7i.8xlarge", 0, 32, 64, 0, 1, 0),
    ("cpu-arm", "c7g.8xlarge", 0, 32, 64, 0, 1, 0),
]


def test_default_catalogue_is_the_published_table() -> None:
    columns = len(TABLE[0])
    rows = [dataclasses.astuple(gpu_type)[:columns] for gpu_type in DEFAULT_CATALOGUE.types]
    assert rows == TABLE


def test_only_cpu_arm_is_arm64() -> None:
    arm = [gpu_type.name for gpu_type in DEFAULT_CATALOGUE.types if gpu_type.architecture == "arm64"]
    assert arm == ["cpu-arm"]


@pytest.mark.parametrize(
    "name, counts",
    [
        ("t4-small", (1,)),
        ("t4", (1, 2, 4)),
        ("h100", (1, 2, 4, 8)),
        ("cpu-x86", (0,)),
    ],
)
def test_counts_are_powers_of_two_up_to_the_node(name: str, counts: tuple[int, ...]) -> None:
    gpu_type = DEFAULT_CATALOGUE.get(name)
    assert gpu_type.counts_on_one_node == counts
    assert [gpu_type.check_count(count) for count in counts] == list(counts)


@pytest.mark.parametrize(
    "name, count, code, hint",
    [
        ("t4", 8, "too_many_gpus", "Ask for 1, 2 or 4 with --gpus."),
        ("h100", 16, "too_many_gpus", "Ask for 1, 2, 4 or 8 with --gpus."),
        ("t4-small", 2, "too_many_gpus", "Ask for 1 with --gpus."),
        ("h100", 3, "bad_gpu_count", "Ask for 1, 2, 4 or 8 with --gpus."),
        ("h100", 0, "bad_gpu_count", "Ask for 1, 2, 4 or 8 with --gpus."),
        ("h100", -1, "bad_gpu_count", "Ask for 1, 2, 4 or 8 with --gpus."),
        ("cpu-arm", 1, "bad_gpu_count", "--gpus 0"),
    ],
)
def test_a_count_that_no_node_gives_is_refused_with_the_choices(
    name: str, count: int, code: str, hint: str
) -> None:
    with pytest.raises(Invalid) as refused:
        DEFAULT_CATALOGUE.get(name).check_count(count)
    assert refused.value.code == code
    assert hint in refused.value.hint


@pytest.mark.parametrize(
    "name, count, share",
    [
        pytest.param("h100", 8, Share(172, 192, 1843, 2048), id="whole node: the limit is the node"),
        pytest.param("h100", 4, Share(86, 144, 921, 1024), id="half: one and a half times its part"),
        pytest.param("h100", 1, Share(21, 36, 230, 256), id="one of eight: rounded down"),
        pytest.param("t4", 1, Share(10, 18, 43, 48), id="one of four"),
        pytest.param("t4-small", 1, Share(7, 8, 28, 32), id="the only one"),
        pytest.param("cpu-x86", 0, Share(9, 16, 19, 21), id="a third of a CPU node"),
    ],
)
def test_share_of_a_node(name: str, count: int, share: Share) -> None:
    assert DEFAULT_CATALOGUE.get(name).share_of(count) == share


def test_share_is_at_least_one_of_everything() -> None:
    tiny = GpuType("tiny", "test.tiny", gpus_per_node=8, vcpus=2, memory_gib=2)
    assert tiny.share_of(1) == Share(1, 1, 1, 1)


@QUICK
@given(gpu_type=st.sampled_from(DEFAULT_CATALOGUE.types), data=st.data())
def test_shares_of_a_full_node_never_ask_for_more_than_it_has(gpu_type: GpuType, data: st.DataObject) -> None:
    count = data.draw(st.sampled_from(gpu_type.counts_on_one_node))
    share = gpu_type.share_of(count)
    users = gpu_type.slots_per_node // gpu_type.slots_for(count)
    assert users * share.cpu_request <= gpu_type.vcpus
    assert users * share.memory_limit_gib <= gpu_type.memory_gib
    assert share.cpu_request <= share.cpu_limit <= gpu_type.vcpus
    assert share.memory_request_gib <= share.memory_limit_gib


def test_cpu_node_has_three_slots_and_a_reservation_takes_one() -> None:
    cpu = DEFAULT_CATALOGUE.get("cpu-x86")
    assert (cpu.slots_per_node, cpu.slots_for(0)) == (3, 1)


@pytest.mark.parametrize("name", ["h100", "H100", "T4-Small", "CPU-x86"])
def test_names_are_found_in_any_letter_case(name: str) -> None:
    assert DEFAULT_CATALOGUE.get(name).name == name.lower()


@pytest.mark.parametrize(
    "name, suggested",
    [
        ("h10", "h100"),
        ("H1000", "h100"),
        ("t4small", "t4-small"),
        ("cpu", "cpu-x86"),
        ("a10", "a10g"),
    ],
)
def test_unknown_name_is_refused_with_the_nearest(name: str, suggested: str) -> None:
    with pytest.raises(Invalid) as refused:
        DEFAULT_CATALOGUE.get(name)
    assert refused.value.code == "unknown_gpu_type"
    assert f'"{name}"' in refused.value.message
    assert suggested in refused.value.hint
    assert DEFAULT_CATALOGUE.find(name) is None


def test_name_like_no_other_is_refused_with_everything_on_offer() -> None:
    with pytest.raises(Invalid) as refused:
        DEFAULT_CATALOGUE.get("zzzzzzzz")
    assert all(gpu_type.name in refused.value.hint for gpu_type in DEFAULT_CATALOGUE.types)


def test_operator_offers_a_part_of_the_catalogue() -> None:
    offered = DEFAULT_CATALOGUE.only(["H100", "t4"])
    assert [gpu_type.name for gpu_type in offered.types] == ["t4", "h100"]


def test_operator_cannot_offer_what_is_not_in_the_catalogue() -> None:
    with pytest.raises(Invalid, match="h1000"):
        DEFAULT_CATALOGUE.only(["h1000"])


def test_names_are_unique() -> None:
    assert len(DEFAULT_CATALOGUE.by_name) == len(DEFAULT_CATALOGUE.types)
    assert Catalogue(()).find("h100") is None
