"""The SSH keys of the person at this machine: which public keys to send, and which private ones to try.

Keys are found in `~/.ssh` and in the agent. If none of them can be used from here, we make a pair of our
own in `~/.gpu-dev`, so that a first reservation works on a fresh machine.
"""

from __future__ import annotations

import fcntl
import subprocess
from dataclasses import dataclass
from pathlib import Path

from gpudev.client.config import Surroundings
from gpudev.client.errors import ClientError
from gpudev.client.ssh import KEY_KINDS

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
