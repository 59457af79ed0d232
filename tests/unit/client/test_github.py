"""Signing a challenge with whichever published key is at hand, by the real `ssh-keygen`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gpudev.adapters.github.ssh_signatures import SshSignatures
from gpudev.client.config import Surroundings
from gpudev.client.errors import LoginFailed
from gpudev.client.ssh_keys import sign_challenge
from gpudev.wire.identity import GitHubChallenge, GitHubProof
from tests.support.ssh_signing import make_ssh_key, running_agent

SERVER = "gpu.example.org"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Surroundings:
    """A home without any keys, and no agent."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return Surroundings(tmp_path, tmp_path / "config.json")


@pytest.fixture
def published(here: Surroundings) -> str:
    return make_ssh_key(here.ssh_dir / "id_ed25519")


def challenge_for(*keys: str) -> GitHubChallenge:
    return GitHubChallenge(
        challenge="to-be-signed", github_user="ada", public_keys=list(keys), expires_at=datetime.now(UTC)
    )


def check(proof: GitHubProof, *keys: str) -> None:
    """As the server does."""
    signatures = SshSignatures(frozenset({f"gpu-dev@{SERVER}"}))
    signatures.check(proof.signature, proof.challenge.encode(), keys)


def test_a_key_on_disk_signs(here: Surroundings, published: str) -> None:
    make_ssh_key(here.ssh_dir / "a_key_that_nobody_knows")
    check(sign_challenge(challenge_for(published), SERVER, here), published)


def test_our_own_key_signs_where_it_is_published(here: Surroundings) -> None:
    own = make_ssh_key(here.state_dir / "id_ed25519")
    check(sign_challenge(challenge_for(own), SERVER, here), own)


@pytest.fixture
def in_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The public half of a key that is nowhere on disk."""
    key = tmp_path / "elsewhere" / "key"
    line = make_ssh_key(key)
    with running_agent(tmp_path, key) as socket:
        monkeypatch.setenv("SSH_AUTH_SOCK", socket)
        key.unlink()
        yield line


def test_a_key_that_only_the_agent_has_signs(here: Surroundings, in_agent: str) -> None:
    check(sign_challenge(challenge_for(in_agent), SERVER, here), in_agent)


def test_a_locked_key_gives_way_to_one_that_works(here: Surroundings, in_agent: str) -> None:
    locked = make_ssh_key(here.ssh_dir / "id_ed25519", passphrase="not told")
    check(sign_challenge(challenge_for(locked, in_agent), SERVER, here), in_agent)


def test_without_a_published_key_it_is_said_what_is_missing(here: Surroundings, published: str) -> None:
    other = make_ssh_key(here.home / "elsewhere")
    with pytest.raises(LoginFailed, match="GitHub user ada") as caught:
        sign_challenge(challenge_for(other), SERVER, here)
    assert caught.value.code == "no_github_key"
    assert "settings/keys" in caught.value.hint
    assert published not in caught.value.message


def test_a_locked_key_is_named_and_nobody_is_asked(here: Surroundings) -> None:
    locked = make_ssh_key(here.ssh_dir / "id_ed25519", passphrase="not told")
    with pytest.raises(LoginFailed, match="id_ed25519") as caught:
        sign_challenge(challenge_for(locked), SERVER, here)
    assert (caught.value.code, "ssh-add" in caught.value.hint) == ("github_key_locked", True)


def test_a_missing_ssh_keygen_is_said_to_be_missing(
    here: Surroundings, published: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(here.home))
    with pytest.raises(LoginFailed, match="ssh-keygen") as caught:
        sign_challenge(challenge_for(published), SERVER, here)
    assert caught.value.code == "no_ssh_keygen"
