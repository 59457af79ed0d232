"""Which sizes a gang may have, what its owner is told of the others, and what its members know."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudev.domain.catalogue import DEFAULT_CATALOGUE, GpuType
from gpudev.domain.errors import Invalid
from gpudev.domain.gang import (
    GANG_ENVIRONMENT_NAMES,
    check_gang_environment,
    check_nodes,
    gang_environment,
)
from tests.support.budgets import QUICK
from tests.support.domain_values import OCTO, QUAD, SLOTTED


@pytest.mark.parametrize("gpus, nodes", [(16, 2), (24, 3), (32, 4)])
def test_whole_nodes_make_a_gang(gpus: int, nodes: int) -> None:
    assert check_nodes(OCTO, gpus, distributed=True) == nodes


@pytest.mark.parametrize("gpu_type", [QUAD, OCTO, SLOTTED], ids=lambda gpu_type: gpu_type.name)
def test_what_fits_on_one_node_takes_one(gpu_type: GpuType) -> None:
    for gpus in gpu_type.counts_on_one_node:
        assert check_nodes(gpu_type, gpus, distributed=False) == 1


@pytest.mark.parametrize(
    "gpu_type, gpus, distributed, code, words, hint",
    [
        pytest.param(
            OCTO, 16, False, "distributed_not_said", "2 whole nodes", "Add --distributed", id="not said"
        ),
        pytest.param(
            OCTO, 12, True, "bad_gpu_count", "whole nodes of 8", "16, 24 or 32", id="one and a half"
        ),
        pytest.param(OCTO, 12, False, "bad_gpu_count", "whole nodes of 8", "1, 2, 4 or 8", id="nor without"),
        pytest.param(OCTO, 8, True, "bad_gpu_count", "not several", "16, 24 or 32", id="one node is no gang"),
        pytest.param(OCTO, 1, True, "bad_gpu_count", "not several", "16, 24 or 32", id="one GPU is no gang"),
        pytest.param(OCTO, 0, True, "bad_gpu_count", "not several", "16, 24 or 32", id="none is no gang"),
        pytest.param(OCTO, -8, True, "bad_gpu_count", "not several", "16, 24 or 32", id="less than none"),
        pytest.param(OCTO, 40, True, "too_many_gpus", "4 octo nodes have (32)", "16, 24 or 32", id="five"),
        pytest.param(OCTO, 33, True, "too_many_gpus", "4 octo nodes have (32)", "16, 24 or 32", id="33"),
        pytest.param(OCTO, 40, False, "too_many_gpus", "4 octo nodes have (32)", "--distributed", id="40"),
        pytest.param(QUAD, 8, True, "no_multinode", "quad reservations have one node", "avail", id="quad"),
        pytest.param(QUAD, 8, False, "too_many_gpus", "than a quad node has (4)", "1, 2 or 4", id="quad 8"),
        pytest.param(SLOTTED, 0, True, "no_multinode", "have one node", "--distributed", id="CPU type"),
        pytest.param(SLOTTED, 8, False, "bad_gpu_count", "has no GPUs", "--gpus 0", id="GPUs of a CPU type"),
    ],
)
def test_other_sizes_are_refused_with_what_would_work(
    gpu_type: GpuType, gpus: int, code: str, words: str, hint: str, *, distributed: bool
) -> None:
    with pytest.raises(Invalid) as refused:
        check_nodes(gpu_type, gpus, distributed=distributed)
    assert refused.value.code == code
    assert words in refused.value.message
    assert hint in refused.value.hint


@QUICK
@given(gpu_type=st.sampled_from(DEFAULT_CATALOGUE.types), gpus=st.integers(-8, 80), distributed=st.booleans())
def test_what_is_accepted_is_a_count_of_one_node_or_whole_nodes(
    gpu_type: GpuType, gpus: int, *, distributed: bool
) -> None:
    try:
        nodes = check_nodes(gpu_type, gpus, distributed=distributed)
    except Invalid:
        return
    if nodes == 1:
        assert gpus in gpu_type.counts_on_one_node
        assert not distributed
    else:
        assert distributed
        assert gpus == nodes * gpu_type.gpus_per_node
        assert nodes <= gpu_type.max_nodes


def test_member_knows_its_rank_the_size_and_the_others() -> None:
    assert gang_environment(("one", "two", "three"), 1, "one.example") == {
        "RANK": "1",
        "WORLD_SIZE": "3",
        "NODE_RANK": "1",
        "MASTER_ADDR": "one.example",
        "MULTINODE_HOSTS": "one,two,three",
    }


def test_every_variable_of_a_gang_but_the_port_is_refused_from_its_owner() -> None:
    assert gang_environment(("one", "two"), 0, "one").keys() == GANG_ENVIRONMENT_NAMES
    check_gang_environment({"MASTER_PORT": "1234", "MINE": "x"})
    for name in GANG_ENVIRONMENT_NAMES:
        with pytest.raises(Invalid, match=name):
            check_gang_environment({name: "x"})
