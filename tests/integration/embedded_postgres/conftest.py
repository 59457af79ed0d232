"""Folders for a PostgreSQL of each test's own."""

from __future__ import annotations

import asyncio
import shutil
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
    """A folder that a server has run in before: copying one takes half the time of making one."""
    folder = tmp_path / "postgres"
    shutil.copytree(used_folder, folder)
    yield folder
    shutil.rmtree(folder)
