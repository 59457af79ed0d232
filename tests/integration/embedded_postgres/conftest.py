"""Folders for a PostgreSQL of each test's own."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.postgres_process import start_and_stop


@pytest.fixture
def new_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for a first start."""
    yield tmp_path / "postgres"
    shutil.rmtree(tmp_path / "postgres")


@pytest.fixture(scope="module")
def used_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("used") / "postgres"
    asyncio.run(start_and_stop(folder))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def folder(tmp_path: Path, used_folder: Path) -> Iterator[Path]:
    """A folder that a server has run in before: copying one takes an eighth of the CPU of making one."""
    folder = tmp_path / "postgres"
    # A third of the CPU of `shutil.copytree`.
    subprocess.run(["cp", "-r", "--preserve=mode,timestamps", used_folder, folder], check=True)
    yield folder
    shutil.rmtree(folder)
