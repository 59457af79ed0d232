"""Proving who one is at GitHub: a challenge of the server, signed with a published SSH key that is at hand.

`ssh-keygen` does it, with the agent if the key is there, else with the private half on disk. The signature is
made for the host name of the server that we were configured to log in to, so that a server which gets it
cannot use it to log in anywhere else. Nobody is asked for anything: a key that is locked is named instead.
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gpudev.client.config import Surroundings
from gpudev.client.errors import LoginFailed
from gpudev.client.ssh_keys import KeyAtHand, list_keys_at_hand
from gpudev.wire.identity import GitHubChallenge, GitHubProof

SIGN_SECONDS = 60.0
"""Enough to touch a security key."""


def sign_challenge(challenge: GitHubChallenge, server: str, surroundings: Surroundings) -> GitHubProof:
    published = {_without_comment(line) for line in challenge.public_keys}
    at_hand = [key for key in list_keys_at_hand(surroundings) if _without_comment(key.line) in published]
    if not at_hand:
        raise LoginFailed(
            f"{server} wants a signature of the GitHub user {challenge.github_user}, "
            "and none of the SSH keys of that user is here.",
            hint="Add one of yours at https://github.com/settings/keys, or to your agent with: ssh-add. "
            "Another GitHub user: gpu-dev login --github-user NAME",
            code="no_github_key",
        )
    troubles = []
    for key in at_hand:
        with _public_file(key) as file:
            signed = _sign(file, server, challenge.challenge)
        if signed.returncode == 0:
            return GitHubProof(challenge=challenge.challenge, signature=signed.stdout)
        troubles.append(_trouble(key, signed.stderr))
    raise LoginFailed(
        f"No SSH key of the GitHub user {challenge.github_user} can sign here: {'; '.join(troubles)}.",
        hint="Unlock a key with: ssh-add FILE",
        code="github_key_locked",
    )


@contextlib.contextmanager
def _public_file(key: KeyAtHand) -> Iterator[Path]:
    """A file that names the key; one that only the agent has is written down for the moment."""
    if key.file is not None:
        yield key.file
        return
    with tempfile.TemporaryDirectory(prefix="gpu-dev-") as folder:
        file = Path(folder, "key.pub")
        file.write_text(f"{key.line}\n", encoding="utf-8")
        yield file


def _sign(public_file: Path, server: str, challenge: str) -> subprocess.CompletedProcess[str]:
    command = ["ssh-keygen", "-Y", "sign", "-n", f"gpu-dev@{server}", "-f", str(public_file)]
    try:
        return subprocess.run(
            command,
            input=challenge,
            capture_output=True,
            text=True,
            timeout=SIGN_SECONDS,
            check=False,
            start_new_session=True,  # without a terminal there is no question for a passphrase
        )
    except FileNotFoundError as error:
        raise LoginFailed(
            f"{server} wants a signature with an SSH key, and there is no ssh-keygen to make one.",
            hint="Install the OpenSSH client.",
            code="no_ssh_keygen",
        ) from error
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", "it took too long")


def _trouble(key: KeyAtHand, words: str) -> str:
    name = key.file.with_suffix("") if key.file else "a key of the agent"
    last = words.strip().splitlines()[-1:] or ["ssh-keygen says nothing"]
    return f"{name} ({last[0].strip()})"


def _without_comment(line: str) -> tuple[str, ...]:
    return tuple(line.split()[:2])
