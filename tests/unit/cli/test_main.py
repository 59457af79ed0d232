"""The command line as a whole: help, mistakes, exit codes, and how little is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gpudev import __version__
from gpudev.cli.errors import EXIT_CODES, exit_code_of
from gpudev.cli.main import ALIASES, COMMANDS
from gpudev.client import errors
from tests.support.fake_api import FakeApi, Reply
from tests.unit.cli.conftest import GpuDev

HEAVY = {"asyncio", "pydantic", "rich", "http", "gpudev.wire.jobs", "gpudev.client.session", "subprocess"}


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_names_every_command(gpu_dev: GpuDev, flag: str) -> None:
    result = gpu_dev(flag)
    assert result.code == 0
    assert all(f"  {name} " in result.out for name in COMMANDS)


@pytest.mark.parametrize("name", [*COMMANDS, *ALIASES])
def test_every_command_has_help(gpu_dev: GpuDev, name: str) -> None:
    assert gpu_dev(name, "-h").code == 0


def test_version(gpu_dev: GpuDev) -> None:
    assert gpu_dev("--version").out == f"gpu-dev, version {__version__}\n"


def test_a_mistyped_command_gets_a_suggestion(gpu_dev: GpuDev) -> None:
    result = gpu_dev("resreve")
    assert result.code == 2
    assert 'There is no command "resreve". Did you mean "reserve"?' in result.err


def test_help_imports_nothing_that_is_slow() -> None:
    script = (
        "import sys; from gpudev.cli.main import run; run(['--help']); print(*sys.modules, file=sys.stderr)"
    )
    answer = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert HEAVY.isdisjoint(answer.stderr.split())


def test_a_listing_imports_neither_rich_nor_asyncio(api: FakeApi, home: Path) -> None:
    api.on("GET", "/v1/jobs", Reply(body={"jobs": [], "total": 0, "limit": 50, "offset": 0}))
    script = (
        "import sys; from gpudev.cli.main import run; code = run(['list']); "
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    answer = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert {"asyncio", "pydantic", "rich", "subprocess"}.isdisjoint(answer.stderr.split())


def test_every_error_has_its_exit_code() -> None:
    kinds = {errors.ClientError, *errors.ClientError.__subclasses__()}
    others = {
        errors.ClientError,
        errors.Conflict,
        errors.NotActive,
        errors.ServerFailed,
        errors.BrokenFile,
        errors.Outdated,
    }
    assert kinds - others == EXIT_CODES.keys()
    assert {exit_code_of(kind("It failed.")) for kind in others} == {1}


@pytest.mark.parametrize(
    "status, code",
    [(400, 2), (422, 2), (404, 3), (403, 4), (401, 4), (409, 1), (500, 1)],
)
def test_the_servers_words_are_shown_with_the_exit_code(
    gpu_dev: GpuDev, api: FakeApi, status: int, code: int
) -> None:
    api.on("GET", "/v1/jobs/nope", Reply(status, {"detail": "It is so.", "code": "x", "hint": "Do this."}))
    result = gpu_dev("show", "nope")
    assert (result.code, result.out) == (code, "")
    assert result.err == "Error: It is so.\nHint: Do this.\n"


def test_with_json_errors_are_json_on_stderr(gpu_dev: GpuDev, api: FakeApi) -> None:
    api.on("GET", "/v1/jobs/nope", Reply(404, {"detail": "Not found.", "code": "not_found", "hint": "Look."}))
    result = gpu_dev("show", "--json", "nope")
    assert (result.code, result.out) == (3, "")
    assert json.loads(result.err) == {"error": "Not found.", "code": "not_found", "hint": "Look."}


def test_with_json_mistakes_of_the_command_line_are_json_too(gpu_dev: GpuDev) -> None:
    result = gpu_dev("reserve", "--json", "--hours", "1", "--for", "2h")
    assert result.code == 2
    assert json.loads(result.err)["code"] == "usage"


def test_without_a_configuration(gpu_dev: GpuDev, home: Path) -> None:
    result = gpu_dev("list")
    assert result.code == 7
    assert "gpu-dev up" in result.err


def test_a_stopped_server(gpu_dev: GpuDev, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPU_DEV_API_URL", "http://127.0.0.1:1")
    (home / ".gpu-dev").mkdir()
    entry = {"api_key": "k", "expires_at": "2999-01-01T00:00:00+00:00"}
    (home / ".gpu-dev" / "credentials").write_text(json.dumps({"http://127.0.0.1:1": entry}))
    result = gpu_dev("avail")
    assert result.code == 7
    assert "does not answer: connection refused" in result.err
    assert "Hint: Start it with: gpu-dev up" in result.err
