"""What the places of `gpu-dev cp` mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudev.cli.commands.connect import Place, find_reservation, parse_place
from tests.unit.cli.conftest import GpuDev


@pytest.mark.parametrize(
    "text, place",
    [
        ("train:", Place("", "train")),
        ("train:a:b", Place("a:b", "train")),
        ("7f3a:/workspace/x", Place("/workspace/x", "7f3a")),
        ("plain", Place("plain")),
        ("./train:a", Place("./train:a")),
        ("my file:a", Place("my file:a")),
    ],
)
def test_a_place_is_here_or_there(text: str, place: Place) -> None:
    assert parse_place(text) == place


def test_a_file_that_is_here_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train:a").touch()
    assert parse_place("train:a") == Place("train:a")


HERE, THERE, ELSEWHERE = Place("a"), Place("a", "train"), Place("a", "other")


@pytest.mark.parametrize(
    "places, reservation",
    [
        ([HERE, THERE], "train"),
        ([THERE, THERE, HERE], "train"),
        ([HERE, HERE], None),
        ([THERE, THERE], None),
        ([THERE, ELSEWHERE, HERE], None),
        ([HERE, THERE, ELSEWHERE], None),
    ],
)
def test_exactly_one_side_is_a_dev_server(places: list[Place], reservation: str | None) -> None:
    assert find_reservation(places) == reservation


def test_one_place_is_too_few(gpu_dev: GpuDev) -> None:
    assert gpu_dev("cp", "train:a").code == 2
