"""The files of a submitted command in a home that belongs to somebody else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpudev.adapters.local.job_files import find_job
from gpudev.domain.job import MAX_OUTPUT, Job
from gpudev.texts.vocabulary import Outcome

ID8 = "0a1b2c3d"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "submit" / ID8 / "run"
    folder.mkdir(parents=True)
    (folder / "output").write_text("words\n")
    return folder


def test_what_the_runner_left_is_read(tmp_path: Path, run: Path) -> None:
    assert find_job(tmp_path, ID8) == Job(output="words\n")
    (run / "code").write_text("143\n")
    (run / "why").write_text("time\n")
    (run / "fetched").touch()
    assert find_job(tmp_path, ID8) == Job(143, Outcome.TIMED_OUT, is_fetched=True, output="words\n")


def test_without_a_command_there_is_none(tmp_path: Path) -> None:
    assert find_job(tmp_path, ID8) is None
    assert find_job(tmp_path / "nothing", ID8) is None


def test_only_the_end_of_a_huge_output_is_read(tmp_path: Path, run: Path) -> None:
    with (run / "output").open("wb") as output:
        output.truncate(10**12)
        output.seek(10**12)
        output.write(b"end")
    job = find_job(tmp_path, ID8)
    assert job is not None
    assert (len(job.output), job.output[-3:]) == (MAX_OUTPUT, "end")


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
@pytest.mark.parametrize("name", ["code", "output", "why", "fetched"])
def test_nothing_is_followed_or_waited_for(tmp_path: Path, run: Path, kind: str, name: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("0\n")
    (run / name).unlink(missing_ok=True)
    match kind:
        case "link":
            (run / name).symlink_to(secret)
        case "pipe":
            os.mkfifo(run / name)
        case _:
            (run / name).mkdir()
    expected = None if name == "output" else Job(output="words\n")
    assert find_job(tmp_path, ID8) == expected


@pytest.mark.parametrize("part", ["submit", f"submit/{ID8}", f"submit/{ID8}/run"])
def test_no_folder_on_the_way_may_be_a_link(tmp_path: Path, run: Path, part: str) -> None:
    (tmp_path / part).rename(tmp_path / "moved")
    (tmp_path / part).symlink_to(tmp_path / "moved")
    assert find_job(tmp_path, ID8) is None
