"""Files and directories of one dev server: home, workspace, and the SSH configuration of a gang.

The members of a gang log in to each other with plain `ssh`, strictly checked. In a sandbox these files lie
in a directory of its own, and the system's configuration of `ssh` includes ours. Where there is no sandbox
they lie beside the server's record, with an `ssh`, `scp` and `sftp` on the path that use them; other
programs do not know the names there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from gpudev.adapters.local.ports import HOST
from gpudev.adapters.local.record import Gang, GangHost
from gpudev.domain.server import LOGIN

_SYSTEM_CONFIG = "/etc/ssh/ssh_config"
_CONFIG, _KEY, _KNOWN_HOSTS = "ssh_config", "id_ed25519", "known_hosts"
_PROGRAMS = "bin"
_PROGRAM_NAMES = ("ssh", "scp", "sftp")
_SKELETON = (".profile", ".bashrc")


def list_gang_files(gang: Gang, directory: str) -> Mapping[str, str]:
    """What each file in the directory holds, by path."""
    return {
        f"{directory}/{_CONFIG}": "".join(_format_host(host, directory) for host in gang.hosts),
        f"{directory}/{_KEY}": gang.private_key,
        f"{directory}/{_KNOWN_HOSTS}": "".join(
            f"{host.name} {host.public_host_key}\n" for host in gang.hosts
        ),
    }


def list_sandbox_files(gang: Gang, directory: str) -> Mapping[str, str]:
    """These and the system's configuration of `ssh`, if it has one, with ours before it."""
    files = list_gang_files(gang, directory)
    system = Path(_SYSTEM_CONFIG)
    if not system.is_file():
        return files
    text = system.read_text(encoding="utf-8", errors="replace")
    return {**files, _SYSTEM_CONFIG: f"Include {directory}/{_CONFIG}\n{text}"}


def write_gang_files(gang: Gang, directory: Path) -> Path:
    """For a server without a sandbox; the directory of its programs for the path."""
    programs = directory / _PROGRAMS
    programs.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path, text in list_gang_files(gang, str(directory)).items():
        file = Path(path)
        file.touch(mode=0o600)
        file.write_text(text, encoding="utf-8")
    source = resources.files("gpudev.adapters.local.devserver") / "gang_ssh.sh"
    for name in _PROGRAM_NAMES:
        program = programs / name
        program.write_bytes(source.read_bytes())
        program.chmod(0o700)
    return programs


def _format_host(host: GangHost, directory: str) -> str:
    settings = (
        f"HostName {HOST}",
        f"Port {host.port}",
        f"User {LOGIN}",
        f"HostKeyAlias {host.name}",
        f'IdentityFile "{directory}/{_KEY}"',
        f'UserKnownHostsFile "{directory}/{_KNOWN_HOSTS}"',
        "GlobalKnownHostsFile /dev/null",
        "StrictHostKeyChecking yes",
        "CheckHostIP no",
        "UpdateHostKeys no",
    )
    return "\n    ".join([f"Host {host.name}", *settings]) + "\n"


def prepare_home(home: Path, owner: int | None) -> None:
    """Make the home if it is new, with a minimal start-up file or two. What is there is left alone."""
    is_new = not home.exists()
    _make_directory(home, owner)
    if is_new:
        for name in _SKELETON:
            _copy_skeleton(name, home / name, owner)


def prepare_workspace(workspace: Path, owner: int | None) -> None:
    _make_directory(workspace, owner)


def _make_directory(directory: Path, owner: int | None) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if owner is not None:
        os.chown(directory, owner, owner)


def _copy_skeleton(name: str, target: Path, owner: int | None) -> None:
    source = resources.files("gpudev.adapters.local.devserver") / "skeleton" / f"dot{name}"
    target.write_bytes(source.read_bytes())
    if owner is not None:
        os.chown(target, owner, owner)
