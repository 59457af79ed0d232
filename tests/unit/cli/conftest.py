"""A user who has run `gpu-dev up`, at a server that answers as it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpudev.cli.main import run
from gpudev.client import codec
from gpudev.client.config import read_surroundings, write_environment
from tests.support.fake_api import SECRET, FakeApi, Reply, login_answer, running_fake_api
from tests.support.wire_values import A_JOB, ACTIVE, AVAILABILITY, JOB_ID, an_event, as_sse


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


GpuDev = Callable[..., Result]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CONFIG_HOME", "GPU_DEV_API_URL", "SSH_AUTH_SOCK", "NO_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    return tmp_path


@pytest.fixture
def api(home: Path) -> Iterator[FakeApi]:
    login_file = home / "login"
    login_file.write_bytes(SECRET)
    with running_fake_api() as api:
        write_environment("local", api.url, login_file, read_surroundings())
        api.on("POST", "/v1/auth/local-login", Reply(body=login_answer("key-1")))
        api.on("GET", "/v1/gpu/availability", Reply(body=codec.encode(AVAILABILITY)))
        api.on("GET", "/v1/disks", Reply(body={"disks": [], "total": 0}))
        yield api


@pytest.fixture
def gpu_dev(home: Path, capsys: pytest.CaptureFixture[str]) -> GpuDev:
    """Types a command line; there is no terminal."""

    def type_command(*arguments: str) -> Result:
        code = run(arguments)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return type_command


def plan_reservation(api: FakeApi, *kinds: str) -> None:
    """The server accepts a submit and tells these events; the reservation is active at the end."""
    answer = {"job_id": JOB_ID, "reservation_id": JOB_ID, "status": "pending", "message": "Accepted."}
    statuses = {"submitted": "pending", "placed": "preparing", "cleaned": "cancelled"}
    events = [
        an_event(number, kind, statuses.get(kind, kind), f"Words of {kind}.")
        for number, kind in enumerate(kinds, 1)
    ]
    api.on("POST", "/v1/jobs/submit", Reply(body=answer))
    api.on("POST", "/v1/jobs/preview", Reply(body={"starts_now": True}))
    api.on("GET", f"/v1/jobs/{JOB_ID}/events", Reply(stream=as_sse(*events)))
    final = ACTIVE if "active" in kinds else A_JOB
    api.on("GET", f"/v1/jobs/{JOB_ID}", Reply(body=codec.encode(final)))
