"""The SSH keys of the person at this machine: which to send, which to try, and what they sign.

Keys are found in `~/.ssh` and in the agent. If none of them can be used from here, we make a pair of our
own in `~/.gpu-dev`, so that a first reservation works on a fresh machine.

A key that is published at GitHub proves who one is there, by signing a challenge of the server. `ssh-keygen`
does it, with the agent if the key is there, else with the private half on disk. The signature is made for the
host name of the server that we were configured to log in to, so that a server which gets it cannot use it to
log in anywhere else. Nobody is asked for anything: a key that is locked is named instead.
"""

from __future__ import annotations

import contextlib
import fcntl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpudev.client.config import Surroundings
from gpudev.client.errors import ClientError, LoginFailed
from gpudev.client.ssh import KEY_KINDS
from gpudev.wire.identity import GitHubChallenge, GitHubProof

AGENT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class KeyAtHand:
    """A public key whose private half may be usable here."""

    line: str
    file: Path | None = None
    """Where its public half lies; None for a key that only the agent has."""


def collect_public_keys(surroundings: Surroundings) -> tuple[str, ...]:
    """Every public key to let in, each once; there is always one whose private half can be used here."""
    in_agent = _list_agent_keys()
    if not in_agent and not list_identity_files(surroundings):
        _make_own_key(own_key_file(surroundings))
    return tuple(key.line for key in _combine(surroundings, in_agent))


def list_keys_at_hand(surroundings: Surroundings) -> tuple[KeyAtHand, ...]:
    """Those on disk and those of the agent, each once."""
    return _combine(surroundings, _list_agent_keys())


def _combine(surroundings: Surroundings, in_agent: tuple[str, ...]) -> tuple[KeyAtHand, ...]:
    files = (*_list_public_files(surroundings.ssh_dir), _public_half(own_key_file(surroundings)))
    in_files = [KeyAtHand(line, file) for file in files if (line := _read_public_key(file))]
    found: dict[tuple[str, ...], KeyAtHand] = {}
    for key in (*in_files, *map(KeyAtHand, in_agent)):
        found.setdefault(_without_comment(key.line), key)
    return tuple(found.values())


def list_identity_files(surroundings: Surroundings) -> tuple[Path, ...]:
    """Private keys on disk whose public halves are sent; ours comes last."""
    beside = [file.with_suffix("") for file in _list_public_files(surroundings.ssh_dir)]
    candidates = (*beside, own_key_file(surroundings))
    return tuple(file for file in candidates if file.is_file())


def own_key_file(surroundings: Surroundings) -> Path:
    return surroundings.state_dir / "id_ed25519"


def _list_public_files(ssh_dir: Path) -> tuple[Path, ...]:
    return tuple(sorted(ssh_dir.glob("*.pub")))


def _public_half(private: Path) -> Path:
    return private.with_name(f"{private.name}.pub")


def _read_public_key(file: Path) -> str | None:
    """The key in a `.pub` file, or None: anything may lie in that folder."""
    try:
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return text if is_public_key(text) else None


def is_public_key(text: str) -> bool:
    fields = text.split()
    return len(fields) > 1 and fields[0] in KEY_KINDS and text.isprintable()


def _list_agent_keys() -> tuple[str, ...]:
    """What the agent offers; without an agent, or without `ssh-add`, nothing."""
    try:
        answer = subprocess.run(
            ["ssh-add", "-L"],  # noqa: S607 - the user's own OpenSSH, from the user's PATH
            capture_output=True,
            text=True,
            timeout=AGENT_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(
        line for line in answer.stdout.splitlines() if answer.returncode == 0 and is_public_key(line)
    )


def _make_own_key(path: Path) -> None:
    """Make the pair, unless another process is just doing it. The private half is put there last."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.new")
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.is_file():
            return
        draft.unlink(missing_ok=True)
        _generate_key(draft)
        _public_half(draft).replace(_public_half(path))
        draft.replace(path)


def _generate_key(path: Path) -> None:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gpu-dev", "-f", str(path)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise ClientError(
            "There is no SSH key here, and no ssh-keygen to make one.", hint="Install the OpenSSH client."
        ) from error
    except subprocess.CalledProcessError as error:
        raise ClientError(f"ssh-keygen could not make a key: {error.stderr.strip()}") from error


def _without_comment(key: str) -> tuple[str, ...]:
    return tuple(key.split()[:2])


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
    import tempfile  # noqa: PLC0415 - few need it, and it takes a while to load

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
