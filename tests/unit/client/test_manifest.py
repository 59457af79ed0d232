"""What of a folder is sent, and what is left out: secrets first of all."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from gpudev.client.errors import Usage
from gpudev.client.manifest import Manifest, Wanted, check_not_home, make_manifest

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nx\n"
SECRETS = [
    ".ssh/id_ed25519",
    ".ssh/config",
    "deploy/id_rsa",
    "deploy/id_rsa.old",
    "server.pem",
    "SERVER.PEM",
    "tls/server.key",
    ".env",
    ".env.production",
    ".envrc",
    "config/prod.env",
    ".aws/credentials",
    ".netrc",
    "sub/.netrc",
    ".kube/config",
    "kubeconfig",
    ".docker/config.json",
    ".pypirc",
    ".npmrc",
    "web/.npmrc",
    ".config/gcloud/credentials.db",
    ".config/gh/hosts.yml",
    ".azure/accessTokens.json",
    ".oci/config",
    ".huggingface/token",
    ".cache/huggingface/token",
    ".kaggle/kaggle.json",
    ".config/wandb/settings",
    ".git-credentials",
    ".gpu-dev/credentials",
    ".gnupg/secring.gpg",
    "hf_token.txt",
    "service-account-prod.json",
    "infra/terraform.tfstate",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".local/share/fish/fish_history",
]
HARMLESS = [".env.example", "train.py", "tokenizer.json", "keys.py", "data/environment.txt", "history.md"]


def write(folder: Path, path: str, content: str = "x") -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(content)


def list_sent(manifest: Manifest) -> list[str]:
    return [entry.path for entry in manifest.files]


@pytest.mark.parametrize("path", SECRETS)
def test_a_secret_is_left_out_and_listed(tmp_path: Path, path: str) -> None:
    write(tmp_path, path)
    manifest = make_manifest(tmp_path)
    assert list_sent(manifest) == []
    (left_out,) = manifest.left_out
    assert left_out.is_secret
    assert path.startswith(left_out.path.rstrip("/"))


@pytest.mark.parametrize("path", HARMLESS)
def test_a_name_that_only_looks_like_one_is_sent(tmp_path: Path, path: str) -> None:
    write(tmp_path, path)
    manifest = make_manifest(tmp_path)
    assert (list_sent(manifest), manifest.left_out) == ([path], ())


@pytest.mark.parametrize(
    "content",
    [
        KEY,
        "text before\n-----BEGIN RSA PRIVATE KEY-----\n",
        '{"private_key": "-----BEGIN PRIVATE KEY-----\\n"}',
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n",
        "PuTTY-User-Key-File-3: ssh-ed25519\n",
        "ghp_" + "a" * 36 + "\n",
        "hf_" + "a" * 34,
    ],
)
def test_a_secret_is_known_by_its_contents(tmp_path: Path, content: str) -> None:
    write(tmp_path, "notes.txt", content)
    (left_out,) = make_manifest(tmp_path).left_out
    assert (left_out.path, left_out.is_secret) == ("notes.txt", True)


def test_a_public_key_and_code_that_reads_keys_are_sent(tmp_path: Path) -> None:
    write(tmp_path, "key.txt", "-----BEGIN PUBLIC KEY-----\n")
    write(tmp_path, "code.py", 'token = os.environ["HF_TOKEN"]\n')
    assert make_manifest(tmp_path).left_out == ()


@pytest.mark.parametrize(
    "path, include",
    [
        (".env", ".env"),
        ("sub/.env", "sub/.env"),
        ("server.pem", "*.pem"),
        (".ssh/config", ".ssh/**"),
        ("notes.txt", "notes.txt"),
        ("out.log", "*.log"),
        ("node_modules/a.js", "node_modules"),
    ],
)
def test_a_flag_sends_what_would_be_left_out(tmp_path: Path, path: str, include: str) -> None:
    write(tmp_path, ".gitignore", "*.log\n")
    write(tmp_path, path, KEY if path == "notes.txt" else "x")
    asked = (include, ".ssh") if include.startswith(".ssh") else (include,)
    assert path in list_sent(make_manifest(tmp_path, Wanted(include=asked)))


def test_a_folder_that_is_asked_for_does_not_bring_its_secrets(tmp_path: Path) -> None:
    write(tmp_path, ".gitignore", "data/\n")
    write(tmp_path, "data/model.bin")
    write(tmp_path, "data/.env")
    assert list_sent(make_manifest(tmp_path, Wanted(include=("data",)))) == [".gitignore", "data/model.bin"]


def test_our_own_file_wins_over_that_of_git_but_not_over_secrets(tmp_path: Path) -> None:
    write(tmp_path, ".gitignore", "data/\n*.txt\n")
    write(tmp_path, ".gpudevignore", "!data/\n*.big\n!.env\n")
    for path in ("data/a", "data/b.txt", "c.big", ".env"):
        write(tmp_path, path)
    manifest = make_manifest(tmp_path)
    assert list_sent(manifest) == [".gitignore", ".gpudevignore", "data/a"]
    reasons = {left_out.path: left_out.reason for left_out in manifest.left_out}
    assert reasons == {".env": "environment file", "c.big": ".gpudevignore", "data/b.txt": ".gitignore"}


def test_links_are_sent_as_links_and_never_followed(tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere"
    write(secret, "key", KEY)
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "out").symlink_to(secret)
    (folder / "file").symlink_to(secret / "key")
    manifest = make_manifest(folder)
    assert list_sent(manifest) == ["file", "out"]
    assert all(entry.size < 1000 for entry in manifest.files)


def test_what_is_no_file_is_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        manifest = make_manifest(tmp_path)
    assert [(one.path, one.reason) for one in manifest.left_out] == [
        ("pipe", "not a file"),
        ("socket", "not a file"),
    ]


def test_names_need_not_be_text(tmp_path: Path) -> None:
    name = b"\xff\xfe\n-x"
    (tmp_path / os.fsdecode(name)).write_text("x")
    assert make_manifest(tmp_path).names() == b"./" + name + b"\0"


def test_a_deep_folder_is_walked(tmp_path: Path) -> None:
    deep = "/".join(["d"] * 1200)
    place = os.open(tmp_path, os.O_RDONLY)
    for part in deep.split("/"):
        os.mkdir(part, dir_fd=place)
        below = os.open(part, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    assert len(make_manifest(tmp_path).entries) == 1200
    # Too deep for the clean-up after the test.
    subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)


def test_a_home_is_not_sent_as_a_whole(tmp_path: Path) -> None:
    home = tmp_path / "home" / "ada"
    project = home / "project"
    project.mkdir(parents=True)
    (tmp_path / "link").symlink_to(home)
    for place in (home, home.parent, Path("/"), tmp_path / "link"):
        with pytest.raises(Usage, match="home directory"):
            check_not_home(place, home)
    check_not_home(project, home)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Usage, match="There is no folder"):
        make_manifest(tmp_path / "nothing")
