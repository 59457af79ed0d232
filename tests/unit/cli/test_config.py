"""`config` and `setup`: what is kept, and where each value comes from."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gpudev.client.config import find_target, read_surroundings
from tests.support.fake_api import FakeApi, Reply
from tests.support.golden import check_golden
from tests.unit.cli.conftest import GpuDev

ADDRESS = "https://gpu-dev.example.org"


def read_file(home: Path) -> Any:
    return json.loads((home / ".config/gpu-dev/config.json").read_text())


def write_file(home: Path, content: object) -> None:
    file = home / ".config/gpu-dev/config.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))


def test_setting_an_address_chooses_production(gpu_dev: GpuDev, home: Path) -> None:
    result = gpu_dev("config", "set", "api_url", f"{ADDRESS}/")
    assert (result.code, result.err) == (0, 'The environment is "prod" now.\n')
    assert read_file(home) == {"environment": "prod", "environments": {"prod": {"api_url": ADDRESS}}}
    target = find_target(read_surroundings())
    assert (target.environment, target.api_url, target.aws.region) == ("prod", ADDRESS, "us-east-2")


def test_each_environment_has_its_own(gpu_dev: GpuDev, home: Path) -> None:
    gpu_dev("config", "set", "api_url", ADDRESS)
    assert "has no address yet" in gpu_dev("config", "environment", "test").err
    gpu_dev("config", "set", "api_url", "https://test.example.org")
    assert find_target(read_surroundings()).aws.region == "us-west-1"
    gpu_dev("config", "set", "region", "eu-west-1")
    gpu_dev("config", "set", "github_user", "ada")
    assert find_target(read_surroundings()).aws.region == "eu-west-1"
    assert gpu_dev("config", "environment", "prod").code == 0
    target = find_target(read_surroundings())
    assert (target.api_url, target.aws.region, target.github_user) == (ADDRESS, "us-east-2", "ada")
    assert "* prod" in gpu_dev("config", "environment").out


@pytest.mark.parametrize(
    "environ, region",
    [
        ({"AWS_REGION": "a", "AWS_DEFAULT_REGION": "b"}, "a"),
        ({"AWS_DEFAULT_REGION": "b"}, "b"),
        ({}, "c"),
    ],
)
def test_the_region_is_looked_for_in_this_order(
    home: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], region: str
) -> None:
    described = {"api_url": ADDRESS, "region": "c"}
    write_file(home, {"environment": "test", "region": "d", "environments": {"test": described}})
    assert find_target(read_surroundings({"HOME": str(home), **environ})).aws.region == region


def test_unset_forgets_it_wherever_it_stands(gpu_dev: GpuDev, home: Path) -> None:
    described = {"prod": {"api_url": ADDRESS, "region": "x"}}
    write_file(home, {"environment": "prod", "region": "y", "github_user": "ada", "environments": described})
    gpu_dev("config", "unset", "region")
    gpu_dev("config", "unset", "github_user")
    assert read_file(home) == {"environment": "prod", "environments": {"prod": {"api_url": ADDRESS}}}


@pytest.mark.parametrize(
    "words, error",
    [
        (("set", "colour", "red"), 'There is no setting "colour". There are api_url, region, github_user.'),
        (("unset", "colour"), 'There is no setting "colour".'),
        (("set", "api_url", "gpu-dev"), '"gpu-dev" is not the address of a server.'),
        (("environment", "production"), 'There is no environment "production". There are prod, test, local.'),
    ],
    ids=str,
)
def test_mistakes_change_nothing(gpu_dev: GpuDev, home: Path, words: tuple[str, ...], error: str) -> None:
    result = gpu_dev("config", *words)
    assert result.code == 2
    assert error in result.err
    assert not (home / ".config").exists()


def test_show_says_where_each_comes_from(
    gpu_dev: GpuDev, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(home, {"environment": "test", "environments": {"test": {"api_url": ADDRESS}}})
    monkeypatch.setenv("GPU_DEV_GITHUB_USER", "ada")
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "500")  # wide enough for the path of any home
    shown = gpu_dev("config", "show").out.replace(str(home), "HOME")
    # The columns are as wide as the path of the home, which is another one each time.
    lines = [re.sub(" {2,}", "  ", line) for line in shown.splitlines()]
    check_golden("cli/config_show.txt", "\n".join(lines))
    assert json.loads(gpu_dev("config", "show", "--json").out)["region"] == {
        "value": "us-west-1",
        "source": "the default of test",
    }


def test_show_with_nothing_configured(gpu_dev: GpuDev, home: Path) -> None:
    result = gpu_dev("config", "show")
    assert result.code == 0
    assert "api_url           -" in result.out


def test_the_old_file_is_taken_over_and_left(gpu_dev: GpuDev, home: Path) -> None:
    old = {"environment": "prod", "api_url": ADDRESS, "region": "us-east-2", "github_user": "ada", "junk": 1}
    (home / ".gpu-dev-config").write_text(json.dumps(old))
    target = find_target(read_surroundings())
    assert (target.environment, target.api_url, target.github_user) == ("prod", ADDRESS, "ada")
    assert read_file(home) == {name: value for name, value in old.items() if name != "junk"}
    assert (home / ".gpu-dev-config").exists()


def test_the_old_file_does_not_matter_once_there_is_a_new_one(gpu_dev: GpuDev, home: Path) -> None:
    write_file(home, {"environment": "prod", "environments": {"prod": {"api_url": ADDRESS}}})
    (home / ".gpu-dev-config").write_text('{"api_url": "https://old.example.org"}')
    assert find_target(read_surroundings()).api_url == ADDRESS


def test_setup_without_a_person_wants_to_be_told(gpu_dev: GpuDev, home: Path) -> None:
    result = gpu_dev("setup", "--environment", "prod")
    assert result.code == 2
    assert "give --environment and --api-url" in result.err


def test_setup_writes_tries_and_says_what_is_next(gpu_dev: GpuDev, api: FakeApi, home: Path) -> None:
    now = "2030-01-15T14:00:00Z"
    health = {"status": "healthy", "database": "connected", "queue": "connected", "timestamp": now}
    api.on("GET", "/health", Reply(body=health))
    api.on("GET", "/v1/me", Reply(body={"user_id": 1, "username": "ada"}))
    result = gpu_dev("setup", "--environment", "local", "--api-url", api.url)
    assert result.code == 1
    assert "FAIL  clock" in result.out
    assert result.err.endswith("Look again with: gpu-dev doctor\n")
    assert read_file(home)["environments"]["local"]["api_url"] == api.url
