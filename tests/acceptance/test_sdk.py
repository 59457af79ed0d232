"""The library on the whole product: every example of its page, and what must hold when things go wrong."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gpudev
from gpudev.client.session import Client
from tests.support.machine import Machine, on_database, running_machine, wait_for

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "sdk.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
FLEET = '[[nodes]]\ntype = "h100"\ncount = 2\ngpus = 4\n'


@pytest.fixture(scope="module")
def machine(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    fleet = tmp_path_factory.mktemp("fleet") / "fleet.toml"
    fleet.write_text(FLEET)
    settings = {"GPU_DEV_REQUESTS_PER_SECOND": "0", **on_database(module_database)}
    with running_machine("--fleet", str(fleet), **settings) as running:
        yield running


@pytest.fixture
def client(machine: Machine) -> Iterator[Client]:
    with machine.client() as client:
        yield client
        machine.run("cancel", "--all", "--yes", check=False)


def count_live(client: Client) -> int:
    return client.list(statuses=["pending", "queued", "preparing", "active"]).total


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_example_runs_and_leaves_nothing(
    machine: Machine, client: Client, tmp_path: Path, example: str
) -> None:
    (tmp_path / "train.py").write_text("print('trained')\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "numbers.txt").write_text("1 2 3\n")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        cwd=tmp_path,
        env=machine.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    wait_for(lambda: count_live(client) == 0, "everything to be given back")
    assert not list((machine.home / ".gpu-dev").glob("*-sshconfig"))


def test_an_exception_in_the_block_gives_everything_back(client: Client) -> None:
    with pytest.raises(ZeroDivisionError), gpudev.reserve("h100", client=client) as box:
        raise ZeroDivisionError
    assert client.wait_until_clean(box.id).reason == "cancelled_by_user"


def test_a_wait_that_takes_too_long_leaves_no_request_behind(client: Client) -> None:
    with gpudev.reserve("h100", gpus=8, distributed=True, client=client):
        with pytest.raises(gpudev.errors.TimedOut):
            gpudev.reserve("h100", timeout=0.5, client=client)
        wait_for(lambda: count_live(client) == 1, "the request to go")


def test_a_folder_is_merged_into_what_is_there(client: Client, tmp_path: Path) -> None:
    source, back = tmp_path / "source", tmp_path / "back"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "it's $a.txt").write_text("words")
    (back / "deep").mkdir(parents=True)
    (back / "deep" / "mine.txt").write_text("mine")
    with gpudev.reserve("h100", client=client) as box:
        box.upload(source, "~/a place/b")
        box.upload(source, "~/a place/b")
        box.download("a place/b", back)
        box.download("a place/b/deep/it's $a.txt", tmp_path / "one.txt")
        with pytest.raises(gpudev.errors.CommandFailed):
            box.download("nothing/here", tmp_path)
        with pytest.raises(gpudev.errors.Usage):
            box.upload(tmp_path / "nothing")
    assert (tmp_path / "one.txt").read_text() == "words"
    found = sorted(path.relative_to(back).as_posix() for path in back.rglob("*") if path.is_file())
    assert found == ["deep/it's $a.txt", "deep/mine.txt"]


def test_a_command_that_takes_too_long_is_left(client: Client) -> None:
    with gpudev.reserve("h100", client=client) as box, pytest.raises(gpudev.errors.TimedOut):
        box.run("sleep 600", timeout=0.5)
