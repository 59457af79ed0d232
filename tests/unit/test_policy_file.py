"""The policy file: what it means, and mistakes told by file, line and what may stand there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gpudev.bootstrap.policy_file import read_policy
from gpudev.domain.catalogue import DEFAULT_CATALOGUE
from gpudev.domain.errors import Invalid
from gpudev.domain.names import NodeName
from gpudev.domain.policy import ALIKE, FairShare, Maintenance
from gpudev.domain.quota import Quota

GOOD = """\
[[quotas]]
user = "ada"
type = "H100"
gpus = 8
waiting = 10
gpu_hours = 200.5
period_days = 14

[[quotas]]
gpus = 2

[fair_share]
half_life_hours = 168

[[maintenance]]
nodes = ["gpu-17", "gpu-18"]
from = 2030-01-01T08:00:00Z
to = 2030-01-01T12:00:00Z

[[maintenance]]
type = "t4"
from = 2030-01-01T08:00:00Z
to = 2030-01-02T08:00:00Z

[node_labels]
nsight = ["true"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "policy.toml"


def test_without_a_file_all_are_alike() -> None:
    assert read_policy(None, DEFAULT_CATALOGUE) is ALIKE


def test_everything_it_says_is_read(file: Path) -> None:
    file.write_text(GOOD)
    policy = read_policy(file, DEFAULT_CATALOGUE)
    assert policy.quotas.find("ada", "h100") == Quota(8, 10, 200.5, timedelta(days=14))
    assert policy.quotas.find("bob", "t4") == Quota(2)
    assert policy.fair_share == FairShare(timedelta(days=7))
    nodes = frozenset({NodeName("gpu-17"), NodeName("gpu-18")})
    day = datetime(2030, 1, 1, tzinfo=UTC)
    assert policy.maintenance[0] == Maintenance(day + timedelta(hours=8), day + timedelta(hours=12), nodes)
    assert policy.maintenance[1].gpu_type == "t4"
    assert policy.node_labels == {"nsight": frozenset({"true"})}


@pytest.mark.parametrize(
    "change, line, words, allowed",
    [
        (("gpus = 8", "gpus = -4"), 4, "gpus = -4", "a whole number, 0 or more"),
        (("gpus = 8", "gpus = 1.5"), 4, "gpus = 1.5", "a whole number, 0 or more"),
        (("waiting = 10", "waiting = 'x'"), 5, "waiting = 'x'", "a whole number, 0 or more"),
        (("gpu_hours = 200.5", "gpu_hours = -1"), 6, "gpu_hours = -1", "a number, 0 or more"),
        (("period_days = 14", "period_days = 0"), 7, "period_days = 0", "more than 0"),
        (("waiting = 10", "colour = 1"), 5, '"colour" is not known', "user, type, gpus, waiting"),
        (("H100", "h1000"), 3, 'no GPU type "h1000"', "t4, t4-small"),
        (("half_life_hours = 168", "half_life_hours = -1"), 13, "half_life_hours = -1", "more than 0"),
        (("half_life_hours = 168", ""), 12, '"half_life_hours" is missing', "a number of hours"),
        (('nodes = ["gpu-17", "gpu-18"]', ""), 15, "which nodes", "either nodes or type"),
        (("to = 2030-01-01T12:00:00Z", "to = 2029-01-01T12:00:00Z"), 18, "not after its beginning", "later"),
        (("to = 2030-01-01T12:00:00Z", "to = 2030-01-01T12:00:00"), 18, "is not possible", "later than"),
        (('type = "t4"', 'nodes = ["gpu-18"]'), 20, "overlaps with that of line 15", "at a time"),
        (("[[quotas]]\ngpus", '[[quotas]]\nuser = "ada"\ntype = "h100"\ngpus'), 9, "line 1 already", "one"),
        (('["true"]', '"true"'), 26, "is not possible", "lists of their values"),
        (('["true"]', "[]"), 26, "no values", "lists of their values"),
        (("[fair_share]", "[fair_share"), 12, "not TOML", "TOML"),
        (
            ("[fair_share]", "[unfair]\nx = 1\n[fair_share]"),
            12,
            '"unfair" is not known',
            "quotas, fair_share",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_is_allowed(
    file: Path, change: tuple[str, str], line: int, words: str, allowed: str
) -> None:
    assert change[0] in GOOD
    file.write_text(GOOD.replace(*change, 1))
    with pytest.raises(Invalid) as refused:
        read_policy(file, DEFAULT_CATALOGUE)
    assert refused.value.message.startswith(f"{file}, line {line}: ")
    assert words in refused.value.message
    assert allowed in refused.value.hint
    assert refused.value.code == "bad_policy_file"


def test_a_file_that_is_not_there_is_named(file: Path) -> None:
    with pytest.raises(Invalid, match=r"policy\.toml cannot be read"):
        read_policy(file, DEFAULT_CATALOGUE)


def test_reserved_hours_and_the_share_of_long_reservations_are_read(file: Path) -> None:
    file.write_text("[[quotas]]\nreserved_gpu_hours = 96\nlong_share = 0.25\n")
    quota = Quota(reserved_gpu_hours=96, long_share=0.25)
    assert read_policy(file, DEFAULT_CATALOGUE).quotas.find("ada", "t4") == quota
