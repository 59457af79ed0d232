"""Fleets: presets, detected GPUs and fleet files."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudev.adapters.local.fleet import detect_fleet, load_fleet, type_name_of
from gpudev.adapters.local.gpus import DetectedGpu
from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.domain.errors import Invalid


def detected(product: str, number: int = 0) -> DetectedGpu:
    return DetectedGpu(product, f"GPU-{number}", number, 150_754_820_096)


@pytest.mark.parametrize(
    "choice, nodes",
    [("test", {"t4-0": 4, "t4-1": 4}), ("prod", {"a100-0": 8, "a100-1": 8})],
)
def test_presets_are_simulated(choice: str, nodes: dict[str, int]) -> None:
    fleet = load_fleet(choice)
    assert {node.name: len(node.gpus) for node in fleet.nodes} == nodes
    assert all(node.is_simulated for node in fleet.nodes)


def test_a_simulated_gpu_can_not_be_taken_for_a_real_one() -> None:
    names = [gpu.visible_name for gpu in load_fleet("test").nodes[0].gpus]
    assert names == [f"simulated-t4-0-{index}" for index in range(4)]


@pytest.mark.parametrize(
    "product, name",
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA A100-SXM4-40GB", "a100"),
        ("NVIDIA A10G", "a10g"),
        ("NVIDIA L4", "l4"),
        ("Tesla T4", "t4"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA GeForce RTX 4090", "geforce-rtx-4090"),
        ("Tesla V100-SXM2-16GB", "v100-sxm2-16gb"),
    ],
)
def test_products_are_types_of_the_catalogue_or_of_their_own(product: str, name: str) -> None:
    assert type_name_of(product) == name


def test_detected_gpus_are_given_by_uuid_and_device_file() -> None:
    fleet = detect_fleet([detected("NVIDIA H200", 0), detected("NVIDIA H200", 1)])
    (node,) = fleet.nodes
    assert (node.name, node.gpu_type, node.slots, node.is_simulated) == ("h200-0", "h200", 2, False)
    assert node.gpus[1].visible_name == "GPU-1"
    assert node.gpus[1].device_paths[:2] == ("/dev/nvidia1", "/dev/nvidiactl")


def test_the_catalogue_offers_what_the_machine_really_has() -> None:
    fleet = detect_fleet([detected("NVIDIA H200", 0), detected("NVIDIA GeForce RTX 4090", 1)])
    catalogue = fleet.catalogue(DEFAULT_CATALOGUE)
    assert [gpu_type.name for gpu_type in catalogue.types] == ["h200", "geforce-rtx-4090"]
    assert (catalogue.get("h200").gpus_per_node, catalogue.get("h200").gpu_memory_gb) == (1, 141)
    with pytest.raises(Invalid, match="more than a h200 node has"):
        catalogue.get("h200").check_count(8)


def test_no_gpus_is_said_plainly() -> None:
    with pytest.raises(Invalid, match="no NVIDIA GPU") as refused:
        detect_fleet([])
    assert "--fleet test" in refused.value.hint


def test_a_fleet_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text(
        '[[nodes]]\ntype = "A100"\ncount = 2\n[[nodes]]\ntype = "t4"\ngpus = 2\n[[nodes]]\ntype = "cpu-x86"\n'
    )
    fleet = load_fleet(str(path))
    assert {node.name: len(node.gpus) for node in fleet.nodes} == {
        "a100-0": 8,
        "a100-1": 8,
        "t4-0": 2,
        "cpu-x86-0": 0,
    }
    assert fleet.nodes[-1].slots == 3
    catalogue = fleet.catalogue()
    assert (catalogue.get("t4").gpus_per_node, catalogue.get("cpu-x86").is_cpu_only) == (2, True)


def test_groups_of_one_type_are_numbered_on(tmp_path: Path) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text('[[nodes]]\ntype = "t4"\n' * 2)
    assert [node.name for node in load_fleet(str(path)).nodes] == ["t4-0", "t4-1"]


@pytest.mark.parametrize(
    "text, what, hint",
    [
        ("nodes = [", "is not TOML", "docs/howto/fleet.md"),
        ("", r"must hold \[\[nodes\]\] tables", "[[nodes]]"),
        ('name = "x"\n[[nodes]]\ntype = "t4"\n', "nothing else", "[[nodes]]"),
        ("nodes = [3]", "number 1: it is not a table", "[[nodes]]"),
        ('[[nodes]]\ntype = "t5"\n', "number 1: type = 't5' is not a GPU type", "t4, t4-small"),
        ('[[nodes]]\ntype = "t4"\n[[nodes]]\ncount = 1\n', "number 2: type = None", "t4, t4-small"),
        ('[[nodes]]\ntype = "t4"\ncount = 0\n', "count = 0 is not a number", "1 to 100"),
        ('[[nodes]]\ntype = "t4"\ncount = true\n', "count = True is not a number", "1 to 100"),
        ('[[nodes]]\ntype = "t4"\ngpus = 65\n', "gpus = 65 is not a number", "1 to 64"),
        ('[[nodes]]\ntype = "t4"\ngpu = 2\n', '"gpu" is not known', "type, count, gpus"),
        ('[[nodes]]\ntype = "cpu-x86"\ngpus = 2\n', "cpu-x86 nodes have no GPUs", "Leave gpus out"),
        ('[[nodes]]\ntype = "t4"\n[[nodes]]\ntype = "t4"\ngpus = 2\n', "of 4 and of 2 GPUs", "same number"),
    ],
)
def test_a_bad_fleet_file_is_refused_with_its_place(tmp_path: Path, text: str, what: str, hint: str) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text(text)
    with pytest.raises(Invalid, match=what) as refused:
        load_fleet(str(path))
    assert str(path) in refused.value.message
    assert hint in refused.value.hint


def test_an_unknown_fleet_is_refused_with_the_choices() -> None:
    with pytest.raises(Invalid, match='no fleet "staging"') as refused:
        load_fleet("staging")
    assert "test, prod, detect" in refused.value.hint
