"""A node of a dev server as OpenSSH reaches it, and what is run and copied there.

Nothing but `ssh`, `scp` and `tar` is needed on either side. What we run there ourselves is in
`client.scripts`; values are their arguments, quoted once.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from gpudev.client.errors import CommandFailed, ConnectionLost, Usage
from gpudev.client.manifest import Manifest
from gpudev.client.programs import Finished, run_joined, run_program
from gpudev.client.scripts import read_script

SSH_FAILED = 255
"""The exit code of `ssh` for a connection that failed; a command may end with it as well."""
CONNECT_SECONDS = 15


@dataclass(frozen=True, slots=True)
class Remote:
    """The configuration file of a reservation, and the alias that one of its nodes has there."""

    config: Path
    alias: str

    def ssh(self, command: str) -> list[str]:
        options = ("-F", str(self.config), "-o", f"ConnectTimeout={CONNECT_SECONDS}", "-T")
        return ["ssh", *options, self.alias, "--", command]

    def scp(self, source: str, target: str) -> list[str]:
        """Paths here are absolute: in others a colon would make `scp` look for a host."""
        return ["scp", "-F", str(self.config), "-q", "-p", "--", source, target]

    def path(self, place: str) -> str:
        """A place there, as `scp` is told of it."""
        return f"{self.alias}:{_from_home(place)}"


def run(
    remote: Remote, command: str | Sequence[str], *, capture: bool = True, timeout: float | None = None
) -> Finished:
    """One text is for the shell there; several words arrive as they are."""
    text = command if isinstance(command, str) else shlex.join(command)
    return run_program(remote.ssh(text), capture=capture, timeout=timeout)


def script_command(name: str, *arguments: str) -> str:
    """The command line that runs one of our scripts there."""
    return shlex.join(["sh", "-c", read_script(name), name, *arguments])


def run_script(remote: Remote, name: str, *arguments: str) -> str:
    """What the script writes. `ConnectionLost` if it is not known how it ended, else `CommandFailed`."""
    finished = run_program(remote.ssh(script_command(name, *arguments)))
    check_ssh(finished, name)
    return finished.stdout


def send_folder(remote: Remote, folder: Path, place: str) -> None:
    """What is in a folder, into a place that is made if it is not there."""
    if not folder.is_dir():
        raise Usage(f"There is no folder {folder}.")
    _send(remote, folder, (".",), place)


def send_files(remote: Remote, manifest: Manifest, place: str, mark: str) -> None:
    """Exactly these files of a folder; then touch the `mark` there."""
    with NamedTemporaryFile() as names:
        names.write(manifest.names())
        names.flush()
        which = ("--no-recursion", "--null", "-T", names.name)
        _send(remote, manifest.folder, which, place, mark)


def _send(remote: Remote, folder: Path, which: Sequence[str], place: str, mark: str = "") -> None:
    pack = ["tar", "-c", "-f", "-", "-C", str(folder), *which]
    unpack = remote.ssh(script_command("receive", _from_home(place), mark))
    packed, received = run_joined(pack, unpack)
    check_ssh(received, f"Sending {folder}")
    _check(packed, f"Packing {folder}")


def fetch_folder(remote: Remote, place: str, folder: Path) -> None:
    """What is in a place there, into a folder here; what is here besides stays."""
    _fetch(remote, script_command("send", _from_home(place)), folder)


def fetch_changes(remote: Remote, place: str, mark: str, folder: Path, exclude: Sequence[str] = ()) -> None:
    """The files there that are new or changed since the mark was touched, into an empty folder here."""
    _fetch(remote, script_command("send_changes", _from_home(place), mark, *exclude), folder)


def upload(remote: Remote, source: Path, place: str) -> None:
    """A file or the contents of a folder."""
    if source.is_dir():
        send_folder(remote, source, place or source.resolve().name)
    elif source.is_file():
        finished = run_program(remote.scp(str(source.absolute()), remote.path(place)))
        check_ssh(finished, f"Copying {source}")
    else:
        raise Usage(f"There is no file or folder {source}.")


def download(remote: Remote, place: str, target: Path) -> None:
    """A file or the contents of a folder."""
    if run(remote, ["test", "-d", _from_home(place)]).exit_code == 0:
        fetch_folder(remote, place, target)
    else:
        finished = run_program(remote.scp(remote.path(place), str(target.absolute())))
        check_ssh(finished, f"Copying {place}")


def check_ssh(finished: Finished, what: str) -> None:
    """An `ssh` that was ended here, or lost its connection, says nothing of what happened there."""
    if finished.exit_code == SSH_FAILED or finished.exit_code < 0:
        words = _last_line(finished.stderr) or "it was closed"
        raise ConnectionLost(f"The SSH connection to the dev server failed: {words}")
    _check(finished, what)


def _check(finished: Finished, what: str) -> None:
    if finished.exit_code != 0:
        words = _last_line(finished.stderr) or f"exit code {finished.exit_code}"
        raise CommandFailed(f"{what} failed: {words}", exit_code=finished.exit_code, output=finished.stderr)


def _fetch(remote: Remote, pack: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # -o: whoever has the files there, here they are ours.
    sent, unpacked = run_joined(remote.ssh(pack), ["tar", "-x", "-o", "-C", str(folder), "-f", "-"])
    check_ssh(sent, "Fetching")
    _check(unpacked, f"Unpacking into {folder}")


def _from_home(place: str) -> str:
    """Places are counted from the home, where every command begins."""
    return "." if place == "~" else place.removeprefix("~/")


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""
