"""What a dev server sees of this machine, as arguments for bubblewrap.

The system's programs and libraries are there to be read; home, workspace and everything temporary are
the server's own; the rest of the machine, gpu-dev's state above all, is not there at all. The network is
the machine's.

Run by root, bubblewrap only mounts, and the server takes on a user id of its own afterwards. Run by
anybody else, it needs a user namespace, in which the server is user 1081.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpudev.domain.server import LOGIN

HOME = "/home/dev"
WORKSPACE = "/workspace"
OWN_FILES = "/run/gpu-dev"
"""Where files lie that are made for the sandbox and have no place in the system."""

_NAMESPACED_USER = 1081
_FIRST_HOST_USER = 0x40000000
_SYSTEM_PATHS = ("/usr", "/etc", "/opt", "/sys")
_MERGED_PATHS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Real directories on old systems, links into /usr on new ones."""
_RESOLVER = "/etc/resolv.conf"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """One dev server's surroundings."""

    name: str
    user_id: int
    shell: str
    home: Path
    workspace: Path
    hidden: Path
    """The state directory; hidden even if it lies below a path that is shown."""
    device_paths: tuple[str, ...] = ()
    read_only_paths: tuple[str, ...] = ()
    other_names: tuple[str, ...] = ()
    """Of sandboxes on this machine that go with this one."""
    files: Mapping[str, str] = field(default_factory=dict)
    """More files for its user alone: in `OWN_FILES`, or instead of one of the system's."""

    @property
    def is_made_by_root(self) -> bool:
        return self.user_id != _NAMESPACED_USER


def choose_user_id(id8: str) -> int:
    """The server's user id: as root one of its own on the host, far from those of people and services."""
    if os.geteuid() != 0:
        return _NAMESPACED_USER
    return _FIRST_HOST_USER | int(id8, 16) % _FIRST_HOST_USER


def choose_owner(home: Path, id8: str) -> int:
    """The user id of whoever owns the home already: a disk keeps its owner from server to server.

    So nothing on it has to change hands, however big it is.
    """
    own = home.stat().st_uid if home.exists() else 0
    return own if own >= _FIRST_HOST_USER else choose_user_id(id8)


def sandbox_files(sandbox: Sandbox) -> Mapping[str, str]:
    """Files that differ in the sandbox: its user, its host name, and what else was asked for."""
    return {**_etc_files(sandbox), **sandbox.files}


def _etc_files(sandbox: Sandbox) -> Mapping[str, str]:
    user = sandbox.user_id
    names = " ".join((sandbox.name, *sandbox.other_names))
    return {
        "/etc/passwd": (
            "root:x:0:0:root:/root:/usr/sbin/nologin\n"
            f"{LOGIN}:x:{user}:{user}:gpu-dev:{HOME}:{sandbox.shell}\n"
            "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        ),
        "/etc/group": f"root:x:0:\n{LOGIN}:x:{user}:\nnogroup:x:65534:\n",
        "/etc/hosts": (f"127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 {names}\n"),
    }


def bubblewrap_arguments(sandbox: Sandbox, data: Mapping[str, int]) -> list[str]:
    """All but the command; `data` has a descriptor to read each of `sandbox_files` from."""
    return [
        *_namespaces(sandbox),
        *_system(),
        *_temporary(),
        *_read_only(sandbox.read_only_paths),
        *_devices(sandbox.device_paths),
        *_directory(HOME, sandbox.home),
        *_directory(WORKSPACE, sandbox.workspace),
        *_files(sandbox, data),
        *_hiding(sandbox),
        *("--chdir", "/"),
    ]


def _namespaces(sandbox: Sandbox) -> Iterator[str]:
    yield from ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", sandbox.name)
    if sandbox.is_made_by_root:
        yield from ("--cap-drop", "ALL")
    else:
        user = str(sandbox.user_id)
        yield from ("--unshare-user", "--uid", user, "--gid", user)


def _system() -> Iterator[str]:
    yield from _read_only(_SYSTEM_PATHS)
    for path in _MERGED_PATHS:
        if Path(path).is_symlink():
            yield from ("--symlink", str(Path(path).readlink()), path)
        else:
            yield from ("--ro-bind-try", path, path)


def _read_only(paths: tuple[str, ...]) -> Iterator[str]:
    for path in paths:
        yield from _parents(path)
        yield from ("--ro-bind-try", path, path)


def _parents(path: str) -> Iterator[str]:
    """Left to itself, bubblewrap makes them for root alone."""
    for parent in reversed(Path(path).parents[:-1]):
        yield from ("--perms", "0755", "--dir", str(parent))


def _temporary() -> Iterator[str]:
    yield from ("--proc", "/proc", "--dev", "/dev")
    yield from ("--perms", "0755", "--dir", "/var")
    for path in ("/dev/shm", "/tmp", "/var/tmp"):  # noqa: S108 - the sandbox's own, empty at the start
        yield from ("--perms", "1777", "--tmpfs", path)
    yield from ("--perms", "0755", "--tmpfs", "/run")
    resolver = os.path.realpath(_RESOLVER)
    if resolver.startswith("/run/"):
        # systemd-resolved and others keep it there; without it no name would resolve.
        yield from ("--ro-bind-try", resolver, resolver)


def _devices(paths: tuple[str, ...]) -> Iterator[str]:
    for path in paths:
        yield from ("--dev-bind-try", path, path)


def _directory(target: str, source: Path) -> Iterator[str]:
    yield from _parents(target)
    yield from ("--bind", str(source), target)


def _files(sandbox: Sandbox, data: Mapping[str, int]) -> Iterator[str]:
    """Made by root they are root's, so others must be able to read them; else they are the user's own."""
    if sandbox.files:
        yield from _parents(f"{OWN_FILES}/file")
    for path, descriptor in data.items():
        is_own = path.startswith(f"{OWN_FILES}/")
        if is_own or Path(path).exists():
            perms = "0600" if is_own and not sandbox.is_made_by_root else "0644"
            yield from ("--perms", perms, "--ro-bind-data", str(descriptor), path)


def _hiding(sandbox: Sandbox) -> Iterator[str]:
    hidden = sandbox.hidden.resolve()
    shown = (*_SYSTEM_PATHS, *_MERGED_PATHS, *sandbox.read_only_paths)
    if any(hidden.is_relative_to(os.path.realpath(path)) for path in shown):
        yield from ("--perms", "0000", "--tmpfs", str(hidden))
