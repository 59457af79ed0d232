"""A command on a dev server that does not need us: it runs on while the connection is gone.

The folder is sent to every node, and the command runs on rank 0, apart from any connection. What it writes
goes to a file there, which is followed from where we are, and so does its exit code. So each step can be done
again after a lost connection, and is, for as long as the reservation is active. See `client/scripts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import TypeVar

from gpudev.client import remote, ssh
from gpudev.client.box import Box
from gpudev.client.errors import CommandFailed, ConnectionLost, NotActive, Unreachable
from gpudev.client.interruption import pause
from gpudev.client.programs import stream_program
from gpudev.client.scripts import read_script

T = TypeVar("T")

EXCLUDED = (".git", ".venv", "__pycache__", "node_modules")
"""What is neither sent nor fetched unless it is asked for: others can make it again."""
PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0)
GONE = 3
"""The exit code of `follow` for a command that is gone without a trace of its end."""


class Submission:
    """One command on one box. The steps are to be taken in the order in which they stand here."""

    def __init__(self, box: Box, tell: Callable[[str], None], exclude: Sequence[str] = EXCLUDED) -> None:
        self.place = f"submit/{ssh.id8(box.id)}"
        """Where it is kept there, counted from the home."""
        self._box = box
        self._tell = tell
        self._exclude = tuple(exclude)
        self._first = box.nodes[0]
        self._files, self._run = f"{self.place}/files", f"{self.place}/run"
        self._mark = f"{self._run}/sent"
        self._offset = 0

    def send(self, folder: Path) -> None:
        """What is in the folder, to every node."""
        for node in self._box.nodes:
            parts = (node, folder, self._files, self._mark, self._exclude)
            self._insist(partial(remote.send_folder, *parts))

    def start(self, command: str) -> None:
        """In the environment of a login shell; a second time nothing happens."""
        arguments = (self._run, self._files, command, read_script("runner"))
        self._insist(partial(remote.run_script, self._first, "start", *arguments))

    def follow(self, write: Callable[[bytes], object]) -> int:
        """Hand on all that it writes, as it comes, each byte once. Returns its exit code."""
        self._insist(partial(self._follow_connection, write))
        return self._insist(self._read_code)

    def fetch(self, folder: Path) -> None:
        """What is new or changed there since it was sent."""
        parts = (self._first, self._files, self._mark, folder, self._exclude)
        self._insist(partial(remote.fetch_changes, *parts))

    def delete(self) -> None:
        """Leave nothing of it there: the home may be a disk that is kept."""
        for node in self._box.nodes:
            self._insist(partial(remote.run_script, node, "forget", self.place))

    def _follow_connection(self, write: Callable[[bytes], object]) -> None:
        def take(piece: bytes) -> None:
            write(piece)
            self._offset += len(piece)

        command = remote.script_command("follow", self._run, str(self._offset))
        code = stream_program(self._first.ssh(command), take)
        if code == GONE:
            raise CommandFailed(
                "The command is gone: it was killed, with all that would have told how.", exit_code=GONE
            )
        if code != 0:
            raise ConnectionLost("The SSH connection to the dev server was lost.")

    def _read_code(self) -> int:
        finished = remote.run(self._first, ["cat", f"{self._run}/code"])
        remote.check_ssh(finished, "Reading the exit code")
        return int(finished.stdout)

    def _insist(self, attempt: Callable[[], T]) -> T:
        """Again after each loss of the connection, for as long as there is something to connect to."""
        for length in chain(PAUSES, repeat(PAUSES[-1])):
            try:
                return attempt()
            except ConnectionLost as error:
                self._check_active()
                self._tell(f"{error.message} Connecting again.")
            pause(length)
        raise AssertionError  # the pauses have no end

    def _check_active(self) -> None:
        try:
            job = self._box.refresh()
        except Unreachable:
            # The network is away as a whole, or only the server. Whether it is worth waiting the clock says.
            expires_at = self._box.expires_at
            if expires_at is not None and expires_at < datetime.now(UTC):
                raise
            return
        if job.status != "active":
            words = job.failure_reason or job.current_detailed_status or "its time is over."
            raise NotActive(
                f"Reservation {ssh.id8(job.job_id)} is {job.status}: {words}",
                hint=f"See what happened with: gpu-dev show {ssh.id8(job.job_id)}",
            )
