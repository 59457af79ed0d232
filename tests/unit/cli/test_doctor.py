"""`doctor`: each thing it looks at, in order and not."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gpudev import __version__
from gpudev.wire.versions import OLDEST_CLIENT_HEADER, VERSION_HEADER
from tests.support.fake_api import FakeApi, Reply
from tests.support.github import FakeGitHub, running_github
from tests.unit.cli.conftest import GpuDev


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with running_github() as running:
        yield running


@pytest.fixture
def well(api: FakeApi, home: Path, github: FakeGitHub, monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    """A machine on which everything is in order."""
    answer_health(api)
    api.on("GET", "/v1/me", Reply(body={"user_id": 1, "username": "ada"}))
    (home / ".ssh").mkdir()
    key = home / ".ssh" / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    github.keys["ada"] = [key.with_suffix(".pub").read_text().strip()]
    monkeypatch.setenv("GPU_DEV_GITHUB_URL", github.url)
    monkeypatch.setenv("GPU_DEV_GITHUB_USER", "ada")
    return api


def answer_health(api: FakeApi, *, skew: timedelta = timedelta(0), version: str = __version__) -> None:
    health = {
        "status": "healthy",
        "database": "connected",
        "queue": "connected",
        "timestamp": (datetime.now(UTC) + skew).isoformat(),
    }
    headers = {VERSION_HEADER: version, OLDEST_CLIENT_HEADER: "0.1.0"}
    api.on("GET", "/health", Reply(body=health, headers=headers))


def examine(gpu_dev: GpuDev) -> tuple[int, dict[str, Any]]:
    result = gpu_dev("doctor", "--json")
    return result.code, {finding["name"]: finding for finding in json.loads(result.out)}


def test_when_all_is_well(gpu_dev: GpuDev, well: FakeApi) -> None:
    code, found = examine(gpu_dev)
    assert {name: finding["state"] for name, finding in found.items()} == dict.fromkeys(
        ("ssh", "ssh keys", "github keys", "address", "clock", "version", "login"), "ok"
    )
    assert code == 0


def test_each_finding_is_a_line(gpu_dev: GpuDev, well: FakeApi) -> None:
    lines = gpu_dev("doctor").out.splitlines()
    assert len(lines) == 7
    assert lines[3] == f"ok    address      {well.url} (environment local)"


def test_a_clock_that_is_wrong(gpu_dev: GpuDev, well: FakeApi) -> None:
    answer_health(well, skew=timedelta(minutes=-7))
    code, found = examine(gpu_dev)
    assert (code, found["clock"]["state"]) == (1, "fail")
    assert "timedatectl" in found["clock"]["fix"]


def test_a_server_that_is_newer(gpu_dev: GpuDev, well: FakeApi, recwarn: pytest.WarningsRecorder) -> None:
    answer_health(well, version="99.0.0")
    code, found = examine(gpu_dev)
    assert (code, found["version"]["state"]) == (0, "note")
    assert "pip install --upgrade gpu-dev" in found["version"]["fix"]
    recwarn.clear()


def test_a_server_that_does_not_tell_its_version(gpu_dev: GpuDev, well: FakeApi) -> None:
    health = well.replies["GET", "/health"][0].body
    well.on("GET", "/health", Reply(body=health))
    assert examine(gpu_dev)[1]["version"]["state"] == "note"


def test_a_server_that_does_not_answer(
    gpu_dev: GpuDev, well: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPU_DEV_API_URL", "http://127.0.0.1:1")
    code, found = examine(gpu_dev)
    assert (code, found["address"]["state"]) == (1, "fail")
    assert "login" not in found


def test_something_else_at_the_address(gpu_dev: GpuDev, well: FakeApi) -> None:
    well.on("GET", "/health", Reply(404, {}))
    code, found = examine(gpu_dev)
    assert (code, found["address"]["state"]) == (1, "fail")


def test_no_configuration(gpu_dev: GpuDev, home: Path) -> None:
    result = gpu_dev("doctor")
    assert result.code == 1
    assert "FAIL  address" in result.out
    assert "gpu-dev setup" in result.out


def test_a_login_that_is_refused(gpu_dev: GpuDev, well: FakeApi) -> None:
    refusal = {"detail": "The proof is wrong.", "code": "unauthenticated", "hint": "Start it again."}
    well.on("POST", "/v1/auth/local-login", Reply(401, refusal))
    code, found = examine(gpu_dev)
    assert (code, found["login"]["message"], found["login"]["fix"]) == (
        1,
        "The proof is wrong.",
        "Start it again.",
    )


@pytest.mark.parametrize(
    "keys, state",
    [({}, "fail"), ({"ada": ["ssh-ed25519 AAAA"]}, "note")],
    ids=["unknown user", "another key"],
)
def test_keys_at_github(
    gpu_dev: GpuDev, well: FakeApi, github: FakeGitHub, keys: dict[str, list[str]], state: str
) -> None:
    github.keys = keys
    found = examine(gpu_dev)[1]["github keys"]
    assert found["state"] == state
    assert found["fix"]


def test_a_github_that_does_not_answer(
    gpu_dev: GpuDev, well: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPU_DEV_GITHUB_URL", "http://127.0.0.1:1")
    code, found = examine(gpu_dev)
    assert (code, found["github keys"]["state"]) == (0, "note")


def test_no_ssh_and_no_keys(
    gpu_dev: GpuDev, api: FakeApi, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(home))
    _, found = examine(gpu_dev)
    assert (found["ssh"]["state"], found["ssh keys"]["state"]) == ("fail", "note")
