"""Where the server is, and what is written about it."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpudev.client.config import (
    Surroundings,
    Target,
    find_target,
    find_time_zone,
    normalise_url,
    read_settings,
    read_surroundings,
    write_environment,
    write_github_user,
)
from gpudev.client.config_file import set_value, write_config
from gpudev.client.errors import BrokenFile, Unreachable, Usage

LOCAL = {"api_url": "http://127.0.0.1:8321", "login_file": "/run/login"}
LOCAL_TARGET = Target("local", "http://127.0.0.1:8321", Path("/run/login"))


def surrounded(home: Path, content: Any = None, api_url: str | None = None) -> Surroundings:
    config_file = home / "config.json"
    if content is not None:
        config_file.write_text(json.dumps(content))
    return Surroundings(home, config_file, api_url)


def test_folders_follow_home_and_xdg(tmp_path: Path) -> None:
    plain = read_surroundings({"HOME": str(tmp_path)})
    moved = read_surroundings({"HOME": str(tmp_path), "XDG_CONFIG_HOME": "/etc/mine"})
    assert plain.config_file == tmp_path / ".config/gpu-dev/config.json"
    assert plain.credentials_file == tmp_path / ".gpu-dev/credentials"
    assert moved.config_file == Path("/etc/mine/gpu-dev/config.json")


@pytest.mark.parametrize(
    "environ, is_plain",
    [({}, False), ({"NO_COLOR": "1"}, True), ({"CI": "true"}, True), ({"TERM": "dumb"}, True)],
)
def test_plain_output_is_a_matter_of_the_environment(environ: dict[str, str], *, is_plain: bool) -> None:
    assert read_surroundings({"HOME": "/h", **environ}).wants_plain_output is is_plain


def test_the_chosen_environment_is_the_target(tmp_path: Path) -> None:
    content = {"environment": "local", "environments": {"local": LOCAL, "other": LOCAL}}
    assert find_target(surrounded(tmp_path, content)) == LOCAL_TARGET


def test_the_address_in_the_environment_variable_wins(tmp_path: Path) -> None:
    content = {"environment": "local", "environments": {"local": LOCAL}}
    target = find_target(surrounded(tmp_path, content, "https://gpu.example.org/"))
    assert target == Target("custom", "https://gpu.example.org", None)


def test_the_address_of_a_known_environment_brings_its_login(tmp_path: Path) -> None:
    content = {"environments": {"local": LOCAL}}
    assert find_target(surrounded(tmp_path, content, "http://127.0.0.1:8321/")) == LOCAL_TARGET


def test_a_plain_address_in_the_file_is_enough(tmp_path: Path) -> None:
    target = find_target(surrounded(tmp_path, {"environment": "prod", "api_url": "https://gpu.example.org"}))
    assert target.api_url == "https://gpu.example.org"


def test_without_any_configuration_the_hint_is_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="No gpu-dev server is configured") as caught:
        find_target(surrounded(tmp_path))
    assert "gpu-dev up" in caught.value.hint


@pytest.mark.parametrize(
    "content",
    [
        [],
        {"environment": "prod"},
        {"environments": 3},
        {"environment": "local", "environments": {"local": {}}},
        {"environment": "local", "environments": {"local": "http://127.0.0.1"}},
    ],
    ids=str,
)
def test_a_file_that_makes_no_sense_is_named(tmp_path: Path, content: object) -> None:
    with pytest.raises(BrokenFile, match=r"config\.json"):
        find_target(surrounded(tmp_path, content))


def test_a_file_that_is_not_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(BrokenFile, match="is not JSON"):
        find_target(surrounded(tmp_path))


@pytest.mark.parametrize("url", ["127.0.0.1:8321", "ftp://host", "http://", "", "gpu.example.org"])
def test_what_is_not_an_address_is_refused(url: str) -> None:
    with pytest.raises(Usage, match="not the address"):
        normalise_url(url)


def test_writing_an_environment_chooses_it_and_keeps_the_rest(tmp_path: Path) -> None:
    before = {
        "github_user": "ada",
        "environment": "prod",
        "environments": {"prod": {"api_url": "https://gpu.example.org"}, "local": {"note": "mine"}},
    }
    surroundings = surrounded(tmp_path, before)
    assert write_environment("local", "http://127.0.0.1:8321/", Path("/run/login"), surroundings) == "prod"
    assert json.loads(surroundings.config_file.read_text()) == {
        "github_user": "ada",
        "environment": "local",
        "environments": {"prod": {"api_url": "https://gpu.example.org"}, "local": {"note": "mine", **LOCAL}},
    }
    assert find_target(surroundings) == replace(LOCAL_TARGET, github_user="ada")


def test_a_new_configuration_is_private(tmp_path: Path) -> None:
    surroundings = Surroundings(tmp_path, tmp_path / "new" / "gpu-dev" / "config.json")
    assert write_environment("local", "http://127.0.0.1:8321", Path("/run/login"), surroundings) is None
    assert stat.S_IMODE(surroundings.config_file.stat().st_mode) == 0o600
    assert [file.name for file in surroundings.config_file.parent.iterdir()] == ["config.json"]


def test_the_name_at_github_comes_from_the_environment_then_from_the_file(tmp_path: Path) -> None:
    here = surrounded(tmp_path, {"api_url": "https://gpu.example.org"})
    assert find_target(here).github_user is None
    write_github_user("ada", here)
    assert find_target(here).github_user == "ada"
    assert find_target(here).api_url == "https://gpu.example.org"
    chosen = read_surroundings({"HOME": str(tmp_path), "GPU_DEV_GITHUB_USER": "countess"}).github_user
    assert find_target(replace(here, github_user=chosen)).github_user == "countess"


@pytest.mark.parametrize(
    "variable,link,zone",
    [
        (None, "/usr/share/zoneinfo/Europe/Berlin", "Europe/Berlin"),
        (None, "../usr/share/zoneinfo/America/Argentina/Buenos_Aires", "America/Argentina/Buenos_Aires"),
        (None, "/var/db/timezone/zoneinfo/Etc/GMT+5", "Etc/GMT+5"),
        (None, "/etc/zone-of-this-machine", None),
        (None, None, None),
        ("Asia/Tokyo", "/usr/share/zoneinfo/Europe/Berlin", "Asia/Tokyo"),
        (":Asia/Tokyo", None, "Asia/Tokyo"),
        ("/usr/share/zoneinfo/Asia/Tokyo", None, "Asia/Tokyo"),
        ("UTC", None, "UTC"),
        ("", "/usr/share/zoneinfo/Europe/Berlin", None),
        ("<+03>-3", None, None),
        ("CET-1CEST,M3.5.0,M10.5.0/3", None, None),
        ("Asia/Tokyo\r\nX-Other: 1", None, None),
    ],
)
def test_the_zone_of_this_machine_comes_from_tz_then_from_the_link(
    tmp_path: Path, variable: str | None, link: str | None, zone: str | None
) -> None:
    localtime = tmp_path / "localtime"
    if link is not None:
        localtime.symlink_to(link)
    assert find_time_zone({} if variable is None else {"TZ": variable}, localtime) == zone


def test_a_zone_that_is_no_link_is_not_told(tmp_path: Path) -> None:
    (tmp_path / "localtime").write_bytes(b"TZif2")
    assert find_time_zone({}, tmp_path / "localtime") is None


def test_the_socket_of_a_server_on_this_machine_goes_when_its_address_changes(tmp_path: Path) -> None:
    surroundings = Surroundings(tmp_path, tmp_path / "config.json")
    socket_file = tmp_path / "api.sock"
    write_environment("local", "http://127.0.0.1:8321", Path("/run/login"), surroundings, socket_file)
    assert find_target(surroundings).socket_file == socket_file
    content = set_value(read_settings(surroundings), "api_url", "https://gpu-dev.example.org")
    write_config(surroundings.config_file, content)
    assert find_target(surroundings).socket_file is None
