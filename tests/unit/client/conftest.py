"""A server that answers as it is told, and a home with a configuration that names it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpudev.client.config import Surroundings, write_environment
from tests.support.fake_api import SECRET, FakeApi, Reply, login_answer, running_fake_api


@dataclass
class Home:
    """A user who has run `gpu-dev up`."""

    surroundings: Surroundings
    login_file: Path


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with running_fake_api() as api:
        api.on("POST", "/v1/auth/local-login", Reply(body=login_answer("key-1")))
        yield api


@pytest.fixture
def home(tmp_path: Path, api: FakeApi) -> Home:
    surroundings = Surroundings(tmp_path, tmp_path / ".config" / "gpu-dev" / "config.json")
    login_file = tmp_path / "login"
    login_file.write_bytes(SECRET)
    write_environment("local", api.url, login_file, surroundings)
    return Home(surroundings, login_file)
