"""SSH keys as people have them, and the real `ssh-keygen` and `ssh-agent` to use them with."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def make_ssh_key(path: Path, *options: str, passphrase: str = "") -> str:
    """A new pair; `path` is the private half. Returns the public half, without a comment."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    kind = options or ("-t", "ed25519")
    command = ["ssh-keygen", "-q", *kind, "-N", passphrase, "-C", "", "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return path.with_name(f"{path.name}.pub").read_text(encoding="utf-8").strip()


def ssh_sign(key: Path, message: str, namespace: str, *options: str) -> str:
    command = ["ssh-keygen", "-Y", "sign", "-q", "-n", namespace, "-f", str(key), *options]
    done = subprocess.run(command, input=message, capture_output=True, text=True, check=True)
    return done.stdout


@contextmanager
def running_agent(folder: Path, *keys: Path) -> Iterator[str]:
    """An agent that holds these keys; gives the path of its socket."""
    socket = folder / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None
        agent.stdout.readline()  # it says where it listens as soon as it does
        environment = {**os.environ, "SSH_AUTH_SOCK": str(socket)}
        for key in keys:
            subprocess.run(["ssh-add", "-q", str(key)], env=environment, check=True)
        try:
            yield str(socket)
        finally:
            agent.send_signal(signal.SIGTERM)
