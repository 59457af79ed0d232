"""A command on a dev server that does not need us: it runs on while the connection is gone.

The folder is sent to every node, and the command runs on rank 0, apart from any connection. What it writes
goes to a file there, which is followed from where we are, and so does its exit code. So each step can be done
again after a lost connection, and is, for as long as the reservation is active. See `client/scripts`.

Before the reservation ends, the command is stopped, so that there is time to fetch what it wrote. We do that
while we are connected; a watcher beside the command does it when we are not.

Results arrive in a folder of their own and are moved to their places one by one, when all of them are here: a
connection that is lost half-way changes nothing. No link is followed, and a secret of yours that was never
sent is not replaced. What cannot go to its place is put aside.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from gpudev.client import remote, ssh
from gpudev.client.dev_server import Box
from gpudev.client.errors import CommandFailed, ConnectionLost, NotActive, Unreachable
from gpudev.client.interruption import pause
from gpudev.client.manifest import EVERYTHING_USUAL, Manifest, Wanted
from gpudev.client.programs import run_program, stream_program
from gpudev.client.scripts import read_script
from gpudev.client.secret_files import find_secret_name
from gpudev.client.ssh import id8
from gpudev.texts.vocabulary import Status


@dataclass(frozen=True, slots=True)
class Placed:
    """How many files are new or changed, and which of them were put aside."""

    count: int = 0
    aside: tuple[str, ...] = ()
    """Their paths below `aside_folder`."""
    aside_folder: Path | None = None


@contextmanager
def arriving_in(folder: Path) -> Iterator[Path]:
    """A folder to unpack into, on the file system where the files are to go."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".gpu-dev-fetch-", dir=folder) as arrived:
        yield Path(arrived)


def place_results(
    arrived: Path, folder: Path, aside: Path, was_sent: Callable[[str], bool] = lambda _: False
) -> Placed:
    """Move all that arrived into the folder. A secret is replaced only if it `was_sent` from here."""
    count = 0
    put_aside = []
    for path in _list_files(arrived):
        is_kept = _is_secret(path) and not was_sent(path) and os.path.lexists(folder / path)
        if is_kept or not _can_go_to(folder, path):
            put_aside.append(path)
        target = (aside if path in put_aside[-1:] else folder) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        (arrived / path).replace(target)
        count += 1
    return Placed(count, tuple(put_aside), aside if put_aside else None)


def _list_files(arrived: Path) -> list[str]:
    found = []
    for place, folders, names in os.walk(arrived):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        found += [os.path.relpath(Path(place) / name, arrived) for name in (*names, *links)]
    return sorted(found)


def _is_secret(path: str) -> bool:
    parts = path.split("/")
    return any(find_secret_name("/".join(parts[: count + 1])) for count in range(len(parts)))


def _can_go_to(folder: Path, path: str) -> bool:
    """Nothing is in the way: a link or a file where a folder is needed, a folder where the file goes."""
    *parents, _ = path.split("/")
    for count in range(len(parents)):
        place = folder.joinpath(*parents[: count + 1])
        if os.path.lexists(place) and (place.is_symlink() or not place.is_dir()):
            return False
    target = folder / path
    return target.is_symlink() or not target.is_dir()


T = TypeVar("T")

PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0)
GONE, TIME_IS_NEAR = 3, 4
"""Exit codes of `follow`: the command is gone without a trace of its end; the seconds are over."""
GRACE = timedelta(minutes=1)
"""Between SIGTERM and SIGKILL, and how long before the end of the reservation the command is stopped."""
KEPT_OUTPUT = 64 * 1024
"""So many bytes of output stay there when the results were fetched, for `gpu-dev logs`."""
BY_USER, BY_TIME = "user", "time"


@dataclass(frozen=True, slots=True)
class Result:
    """How a command ended."""

    exit_code: int
    stopped: str = ""
    """Why it was stopped: `user` or `time`; empty: it ended by itself."""


class Submission:
    """One command on one box. The steps are to be taken in the order in which they stand here."""

    def __init__(
        self,
        box: Box,
        tell: Callable[[str], None],
        wanted: Wanted = EVERYTHING_USUAL,
        grace: timedelta = GRACE,
    ) -> None:
        self.place = f"submit/{ssh.id8(box.id)}"
        """Where it is kept there, counted from the home."""
        self.box = box
        self._tell = tell
        self._wanted = wanted
        self._grace = grace
        self._first = box.nodes[0]
        self._files, self._run = f"{self.place}/files", f"{self.place}/run"
        self._mark = f"{self._run}/sent"
        self._offset = 0

    def send(self, manifest: Manifest) -> None:
        """These files of a folder, to every node."""
        for node in self.box.nodes:
            self._insist(partial(remote.send_files, node, manifest, self._files, self._mark))

    def start(self, command: str) -> None:
        """In the environment of a login shell; a second time nothing happens."""
        parts = map(read_script, ("runner", "watch", "stop", "stopper"))
        arguments = (self._run, self._files, command, self._grace_seconds, *parts)
        self._insist(partial(remote.run_script, self._first, "start", *arguments))

    def follow(self, write: Callable[[bytes], object]) -> Result:
        """Hand on all that it writes, as it comes, each byte once, until it has ended.

        It is stopped if the reservation is about to end. `NotActive` if that has ended already.
        """
        while not self._insist(partial(self._follow_connection, write)):
            if self._is_end_near():
                self.stop(BY_TIME)
        return self._insist(self._read_result)

    def stop(self, why: str) -> None:
        """SIGTERM, and SIGKILL after the grace. It has ended when `follow` says so."""
        arguments = (self._run, why, self._grace_seconds, read_script("stopper"))
        self._insist(partial(remote.run_script, self._first, "stop", *arguments))

    def fetch(self, folder: Path, was_sent: Callable[[str], bool] = lambda _: False) -> Placed:
        """What is new or changed there since it was sent."""
        aside = folder / f"gpu-dev-conflicts-{ssh.id8(self.box.id)}"
        unwanted = self._wanted.list_unfetched()

        def attempt() -> Placed:
            with arriving_in(folder) as arrived:
                remote.fetch_changes(self._first, self._files, self._mark, arrived, unwanted)
                return place_results(arrived, folder, aside, was_sent)

        try:
            return self._insist(attempt)
        except OSError as error:
            raise CommandFailed(f"Writing to {folder} failed: {error.strerror}", exit_code=1) from error

    def delete(self) -> None:
        """Delete its files there: the home may be a disk that is kept. How it ended stays for a while."""
        arguments = (self.place, str(KEPT_OUTPUT))
        self._insist(partial(remote.run_script, self._first, "fetched", *arguments))
        for node in self.box.nodes[1:]:
            self._insist(partial(remote.run_script, node, "forget", self.place))

    @property
    def _grace_seconds(self) -> str:
        return str(math.ceil(self._grace.total_seconds()))

    def _follow_connection(self, write: Callable[[bytes], object]) -> bool:
        """Whether it has ended."""

        def take(piece: bytes) -> None:
            write(piece)
            self._offset += len(piece)

        command = remote.script_command("follow", self._run, str(self._offset), self._seconds_to_follow())
        code = stream_program(self._first.ssh(command), take)
        if code == GONE:
            raise CommandFailed(
                "The command is gone: it was killed, with all that would have told how.", exit_code=GONE
            )
        if code not in {0, TIME_IS_NEAR}:
            raise ConnectionLost("The SSH connection to the dev server was lost.")
        return code == 0

    def _seconds_to_follow(self) -> str:
        """Until the command is to be stopped; when it is being stopped, a while at a time."""
        left = self._find_left()
        if left is None:
            return ""
        return str(math.ceil(left.total_seconds()) if left > timedelta() else self._grace_seconds)

    def _find_left(self) -> timedelta | None:
        """How long the command may run on; None where no end is known."""
        expires_at = self.box.expires_at
        return None if expires_at is None else expires_at - self._grace - datetime.now(UTC)

    def _is_end_near(self) -> bool:
        """By a fresh look: the reservation may have been extended."""
        self._check_active()
        left = self._find_left()
        return left is not None and left <= timedelta(seconds=1)

    def _read_result(self) -> Result:
        words = remote.run_script(self._first, "result", self._run).split()
        return Result(int(words[0]), words[1] if words[1:] else "")

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
            job = self.box.refresh()
        except Unreachable:
            # The network is away as a whole, or only the server. Whether it is worth waiting the clock says.
            expires_at = self.box.expires_at
            if expires_at is not None and expires_at < datetime.now(UTC):
                raise
            return
        if job.status != Status.ACTIVE:
            words = job.failure_reason or job.current_detailed_status or "its time is over."
            raise NotActive(
                f"Reservation {ssh.id8(job.job_id)} is {job.status}: {words}",
                hint=f"See what happened with: gpu-dev show {ssh.id8(job.job_id)}",
            )


def find_offset(box: Box, tail: int | None) -> int | None:
    """Where its last lines begin. None where no command was started, or where nobody here may log in."""
    lines = "" if tail is None else str(tail)
    command = remote.script_command("output", _run_of(box), lines)
    finished = run_program(box.nodes[0].ssh(command))
    return int(finished.stdout) if finished.exit_code == 0 else None


def pass_output(box: Box, offset: int, write: Callable[[bytes], object], *, follow: bool) -> None:
    """From there on; `follow` goes on until the command is over."""
    command = remote.script_command("follow", _run_of(box), str(offset), "" if follow else "0")
    stream_program(box.nodes[0].ssh(command), write)


def _run_of(box: Box) -> str:
    return f"submit/{id8(box.id)}/run"
