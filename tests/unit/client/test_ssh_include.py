"""The line in the user's own SSH configuration, as OpenSSH reads it."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from pathlib import Path

import pytest

from gpudev.client import ssh, ssh_include
from gpudev.client.config import Surroundings
from gpudev.client.errors import BrokenFile
from tests.support.wire_values import ACTIVE

OWN = "Host build\n    HostName build.example.org\n"


@pytest.fixture
def surroundings(tmp_path: Path) -> Surroundings:
    home = tmp_path / "home of ada"
    home.mkdir()
    return Surroundings(home, home / "config.json")


def resolve(surroundings: Surroundings, host: str) -> str:
    command = ["ssh", "-G", "-F", str(surroundings.ssh_dir / "config"), host]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return next(line.split()[1] for line in answer.stdout.splitlines() if line.startswith("hostname "))


def test_every_reservation_is_a_host_and_so_is_what_was_there(surroundings: Surroundings) -> None:
    surroundings.ssh_dir.mkdir()
    own = surroundings.ssh_dir / "config"
    own.write_text(OWN)
    ssh.write_config(surroundings, "http://127.0.0.1:1", ACTIVE, ())
    assert not ssh_include.is_included(surroundings)
    assert ssh_include.include(surroundings) == (own,)
    assert ssh_include.is_included(surroundings)
    assert resolve(surroundings, "gpu-dev-train") == "127.0.0.1"
    assert resolve(surroundings, "build") == "build.example.org"


def test_it_is_written_once_and_taken_out_whole(surroundings: Surroundings) -> None:
    surroundings.ssh_dir.mkdir()
    own = surroundings.ssh_dir / "config"
    own.write_text(OWN)
    ssh_include.include(surroundings)
    written = own.read_text()
    assert ssh_include.include(surroundings) == ()
    assert own.read_text() == written
    assert ssh_include.exclude(surroundings) == (own,)
    assert own.read_text() == OWN
    assert ssh_include.exclude(surroundings) == ()


def test_a_new_file_is_private(surroundings: Surroundings) -> None:
    (own,) = ssh_include.include(surroundings)
    assert stat.S_IMODE(own.stat().st_mode) == 0o600
    assert stat.S_IMODE(own.parent.stat().st_mode) == 0o700


def test_cursor_has_a_file_of_its_own(surroundings: Surroundings) -> None:
    (surroundings.home / ".cursor").mkdir()
    assert [file.name for file in ssh_include.include(surroundings)] == ["config", "ssh_config"]
    assert ssh_include.is_included(surroundings)


def test_a_link_stays_a_link(surroundings: Surroundings, tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles"
    kept.write_text(OWN)
    surroundings.ssh_dir.mkdir()
    (surroundings.ssh_dir / "config").symlink_to(kept)
    ssh_include.include(surroundings)
    assert (surroundings.ssh_dir / "config").is_symlink()
    assert kept.read_text().endswith(OWN)


def test_a_file_that_cannot_be_read_is_left_alone(surroundings: Surroundings) -> None:
    (surroundings.ssh_dir / "config").mkdir(parents=True)
    with pytest.raises(BrokenFile, match="cannot be read"):
        ssh_include.include(surroundings)


def test_at_home_the_line_is_the_short_one() -> None:
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    line = ssh_include.include_line(Surroundings(home, home / "config.json"))
    assert line == "Include ~/.gpu-dev/*-sshconfig"
