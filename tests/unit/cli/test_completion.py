"""What Tab offers, and what it costs the server."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gpudev.cli import completing
from gpudev.client import codec
from tests.support.fake_api import FakeApi, Reply
from tests.support.wire_values import ACTIVE
from tests.unit.cli.conftest import GpuDev


@pytest.fixture
def live(api: FakeApi) -> FakeApi:
    page = {"jobs": codec.encode([ACTIVE]), "total": 1, "limit": 50, "offset": 0}
    api.on("GET", "/v1/jobs", Reply(body=page))
    return api


def press_tab(*words: str) -> list[str]:
    """As bash does it: the words so far, the last of them unfinished."""
    asked = {
        **os.environ,
        "_GPU_DEV_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("gpu-dev", *words)),
        "COMP_CWORD": str(len(words)),
    }
    command = [sys.executable, "-c", "from gpudev.cli.main import run; run([])"]
    answer = subprocess.run(command, env=asked, capture_output=True, text=True, check=False)
    assert answer.stderr == ""
    return [line.split(",")[1] for line in answer.stdout.splitlines() if line]


@pytest.mark.parametrize(
    "words, offered",
    [
        (("re",), ["reserve"]),
        (("show", ""), ["train", "7f3a91c2"]),
        (("connect", "tr"), ["train"]),
        (("reserve", "-t", ""), ["h100", "t4"]),
        (("reserve", "--disk", ""), []),
        (("disk", "re"), ["rename", "restore"]),
        (("config", ""), ["show", "set", "unset", "environment", "ssh-include"]),
    ],
    ids=" ".join,
)
def test_tab_offers(live: FakeApi, words: tuple[str, ...], offered: list[str]) -> None:
    assert press_tab(*words) == offered


def test_a_second_tab_does_not_ask_the_server_again(live: FakeApi) -> None:
    first = completing.find_words("reservations")
    assert completing.find_words("reservations") == first
    assert len(live.seen("GET", "/v1/jobs")) == 1


def test_what_is_kept_grows_old(live: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    completing.find_words("reservations")
    monkeypatch.setattr(completing, "FRESH_SECONDS", 0.0)
    completing.find_words("reservations")
    assert len(live.seen("GET", "/v1/jobs")) == 2


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nonsense"])
def test_without_a_server_nothing_is_offered_and_nothing_said(
    live: FakeApi, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("GPU_DEV_API_URL", url)
    assert press_tab("show", "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(gpu_dev: GpuDev, shell: str) -> None:
    result = gpu_dev("completion", shell)
    assert result.code == 0
    assert f"_GPU_DEV_COMPLETE={shell}_complete" in result.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_itself_reads_the_script(gpu_dev: GpuDev, shell: str) -> None:
    try:
        subprocess.run([shell, "-n"], input=gpu_dev("completion", shell).out, text=True, check=True)
    except FileNotFoundError:
        pytest.skip(f"{shell} is not installed")
