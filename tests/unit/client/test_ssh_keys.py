"""Which keys are sent, with the real OpenSSH programs."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpudev.client.config import Surroundings
from gpudev.client.ssh_keys import collect_public_keys, is_public_key, list_identity_files, own_key_file


@pytest.fixture(autouse=True)
def _no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture
def surroundings(tmp_path: Path) -> Surroundings:
    return Surroundings(tmp_path, tmp_path / "config.json")


def make_key(path: Path) -> str:
    path.parent.mkdir(exist_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ada", "-f", path], check=True)
    return path.with_suffix(".pub").read_text().strip()


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    socket = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()  # it prints its socket once it listens there
    monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
    yield
    process.terminate()
    process.communicate()


def test_without_any_key_a_pair_of_our_own_is_made_once(surroundings: Surroundings) -> None:
    first = collect_public_keys(surroundings)
    assert first == collect_public_keys(surroundings)
    assert first[0].endswith(" gpu-dev")
    assert list_identity_files(surroundings) == (own_key_file(surroundings),)
    assert stat.S_IMODE(own_key_file(surroundings).stat().st_mode) == 0o600


def test_two_first_runs_at_once_agree_on_one_pair(surroundings: Surroundings) -> None:
    with ThreadPoolExecutor() as threads:
        found = list(threads.map(collect_public_keys, [surroundings] * 4))
    assert len(set(found)) == 1
    assert len(found[0]) == 1


def test_every_key_in_the_users_folder_is_sent_and_tried(surroundings: Surroundings) -> None:
    work = make_key(surroundings.ssh_dir / "work")
    usual = make_key(surroundings.ssh_dir / "id_ed25519")
    assert collect_public_keys(surroundings) == (usual, work)
    assert [file.name for file in list_identity_files(surroundings)] == ["id_ed25519", "work"]
    assert not own_key_file(surroundings).exists()


def test_a_public_half_alone_is_sent_and_does_not_count_as_a_key(surroundings: Surroundings) -> None:
    lonely = make_key(surroundings.ssh_dir / "id_ed25519")
    (surroundings.ssh_dir / "id_ed25519").unlink()
    keys = collect_public_keys(surroundings)
    assert keys[0] == lonely
    assert keys[1].endswith(" gpu-dev")


@pytest.mark.usefixtures("agent")
def test_keys_in_the_agent_are_sent_once(surroundings: Surroundings) -> None:
    on_disk = make_key(surroundings.ssh_dir / "id_ed25519")
    elsewhere = make_key(surroundings.home / "stick")
    for file in (surroundings.ssh_dir / "id_ed25519", surroundings.home / "stick"):
        subprocess.run(["ssh-add", "-q", file], check=True, env=os.environ, stderr=subprocess.DEVNULL)
    assert collect_public_keys(surroundings) == (on_disk, elsewhere)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ssh-ed25519",
        "ssh-dss AAAA ada",
        "ssh-ed25519-cert-v01@openssh.com AAAA ada",
        "ssh-ed25519 AAAA\nssh-ed25519 BBBB",
        "not a key",
    ],
)
def test_what_a_dev_server_would_not_take_stays_at_home(text: str) -> None:
    assert not is_public_key(text)
