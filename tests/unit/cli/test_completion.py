"""What Tab offers, and what it costs the server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpudev.cli import completion
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
    first = completion.find_words("reservations")
    assert completion.find_words("reservations") == first
    assert len(live.seen("GET", "/v1/jobs")) == 1


def test_what_is_kept_grows_old(live: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    completion.find_words("reservations")
    monkeypatch.setattr(completion, "FRESH_SECONDS", 0.0)
    completion.find_words("reservations")
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


PRESS_TAB = {
    "bash": (
        'source "$1"; COMP_WORDS=(gpu-dev show tr); COMP_CWORD=2; _gpu_dev_completion gpu-dev;'
        ' printf "%s\\n" "${COMPREPLY[@]}"'
    ),
    # What would draw the list prints it; there is no line editor without a terminal.
    "zsh": (
        "compdef() { : }; compadd() { print -l ${(P)5} }; _describe() { print -l ${${(P)3}%%:*} };"
        ' source "$1"; words=(gpu-dev show tr); CURRENT=3; _gpu_dev_completion'
    ),
    "fish": 'source $argv[1]; complete -C "gpu-dev show tr"',
}


@pytest.mark.parametrize("shell", PRESS_TAB)
def test_the_shell_itself_offers_live_words(
    gpu_dev: GpuDev, live: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    if shutil.which(shell) is None:
        if shell in os.environ.get("GPU_DEV_TEST_REQUIRE", ""):
            pytest.fail(f"{shell} is not installed, and GPU_DEV_TEST_REQUIRE names it.")
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "script"
    script.write_text(gpu_dev("completion", shell).out)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    words = ("-c", PRESS_TAB[shell], *(() if shell == "fish" else (shell,)), str(script))
    pressed = subprocess.run([shell, *words], capture_output=True, text=True, check=True)
    offered = [line.partition("\t")[0] for line in pressed.stdout.splitlines()]  # fish adds descriptions
    assert (offered, pressed.stderr) == (["train"], "")
