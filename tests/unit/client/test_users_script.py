"""What a user writes is checked as strictly as what we write: the examples, without one `ignore`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.architecture.source_tree import ROOT

PAGE = ROOT.parents[1] / "docs" / "howto" / "sdk.md"
SCRIPT = """\
import asyncio
from collections.abc import Sequence
from datetime import datetime

import gpudev
from gpudev import Box, Client, Finished


def train(box: Box, arguments: Sequence[str]) -> Finished:
    return box.run(["python3", "train.py", *arguments], timeout=3600)


def list_names(client: Client) -> list[str]:
    return [job.name for job in client.list(statuses=["active"]).jobs]


async def ends_at(reservation: str) -> datetime | None:
    async with gpudev.aio.attach(reservation) as box:
        details = await box.extend(0.5)
        finished: Finished = await box.run("hostname", check=False)
        print(finished.stdout)
        return details.expires_at


with gpudev.reserve("h100", gpus=2, hours=4, disk="none") as box:
    print(train(box, ["--fast"]).exit_code)
print(asyncio.run(ends_at("train")))
"""
WRONG = """\
import gpudev

with gpudev.reserve("h100", gpus="two", colour="blue") as box:
    box.run(7)


async def main() -> None:
    async with gpudev.aio.attach("train") as box:
        name: int = (await box.run("hostname", node="x")).stdout
"""


def check(folder: Path, *files: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={folder}", *files]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_a_users_script_is_strictly_typed(tmp_path: Path) -> None:
    examples = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    files = [tmp_path / f"example_{number}.py" for number in range(len(examples) + 1)]
    for file, text in zip(files, [SCRIPT, *examples], strict=True):
        file.write_text(text)
    (tmp_path / "wrong.py").write_text(WRONG)
    done = check(tmp_path, *files)
    assert done.returncode == 0, done.stdout
    mistakes = check(tmp_path, tmp_path / "wrong.py").stdout
    assert re.findall(r"wrong\.py:(\d+):.* error: ", mistakes) == ["3", "3", "4", "9", "9"], mistakes
