"""GPU types of the operator's own, from a file."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from gpudev.bootstrap.gpu_types_file import read_catalogue
from gpudev.domain.catalogue import DEFAULT_CATALOGUE, Share
from gpudev.domain.errors import Invalid

SLICE = """
[[types]]
name = "a100-slice"
gpus_per_node = 56
vcpus = 96
memory_gib = 1152
resource = "nvidia.com/mig-1g.5gb"
share = { cpu = "10m", memory = "64Mi", cpu_limit = "1" }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "gpu-types.toml"


def test_without_a_file_everything_is_on_offer() -> None:
    assert read_catalogue(None, DEFAULT_CATALOGUE) is DEFAULT_CATALOGUE


def test_a_type_is_added_with_its_own_share(file: Path) -> None:
    file.write_text(SLICE)
    catalogue = read_catalogue(file, DEFAULT_CATALOGUE)
    added = catalogue.get("A100-Slice")
    assert added.resource == "nvidia.com/mig-1g.5gb"
    assert added.share_of(2) == Share(Fraction(1, 50), Fraction(2), Fraction(1, 8), Fraction(1, 8))
    assert catalogue.get("t4") == DEFAULT_CATALOGUE.get("t4")


def test_a_type_of_the_catalogue_is_replaced_and_the_others_retired(file: Path) -> None:
    file.write_text(
        'offered = ["t4"]\n[[types]]\nname = "t4"\ngpus_per_node = 2\nvcpus = 8\nmemory_gib = 32\n'
    )
    (only,) = read_catalogue(file, DEFAULT_CATALOGUE).types
    assert (only.name, only.gpus_per_node) == ("t4", 2)


@pytest.mark.parametrize(
    "content, words",
    [
        ("[[types", "TOML"),
        ('[[types]]\nname = "x"\n', "gpus_per_node"),
        (SLICE + "colour = 1\n", "colour"),
        (SLICE.replace("64Mi", "a lot"), "a lot"),
    ],
    ids=["not TOML", "something is missing", "something is unknown", "not a quantity"],
)
def test_a_file_that_cannot_be_used_is_named_with_what_is_wrong(file: Path, content: str, words: str) -> None:
    file.write_text(content)
    with pytest.raises(Invalid, match=str(file)) as refusal:
        read_catalogue(file, DEFAULT_CATALOGUE)
    assert words.lower() in refusal.value.message.lower()


def test_an_unknown_type_is_not_offered(file: Path) -> None:
    file.write_text('offered = ["t5"]\n')
    with pytest.raises(Invalid, match="t5"):
        read_catalogue(file, DEFAULT_CATALOGUE)


def test_a_file_that_is_not_there_is_named(file: Path) -> None:
    with pytest.raises(Invalid, match="cannot be used"):
        read_catalogue(file, DEFAULT_CATALOGUE)
