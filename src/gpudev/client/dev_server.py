"""A dev server in the hands of a script: reserve it, run and copy things there, give it back.

    with gpudev.reserve("h100", gpus=2, hours=4) as box:
        box.upload("train.py")
        print(box.run("python3 train.py").stdout)

`gpudev.client.aio` is the same for asyncio.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Self, Unpack

from gpudev.client import remote, ssh
from gpudev.client.errors import CommandFailed, Usage
from gpudev.client.programs import Finished
from gpudev.client.remote import Remote
from gpudev.client.session import Client, connect
from gpudev.client.ssh_keys import list_identity_files
from gpudev.client.submit_request import Options, build_request, complete_request
from gpudev.texts.vocabulary import TERMINAL, Status
from gpudev.wire.jobs import JobDetail, JobEvent

DEFAULT_HOURS = 4.0


class Box:
    """An active reservation. As a context manager it is given back at the end, whatever happened."""

    def __init__(self, client: Client, details: JobDetail) -> None:
        self.client = client
        self.details = details
        """What the server said of it last; `refresh` asks again."""
        self._at_end = ExitStack()
        config = ssh.write_config(
            client.surroundings, client.target.api_url, details, list_identity_files(client.surroundings)
        )
        self.nodes = tuple(Remote(config, host.alias) for host in ssh.list_hosts(details))
        """How OpenSSH reaches each node, by rank; there is one unless it was asked for `distributed`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def id(self) -> str:
        return self.details.job_id

    @property
    def name(self) -> str:
        return self.details.name

    @property
    def expires_at(self) -> datetime | None:
        return self.details.expires_at

    @property
    def ssh_config(self) -> Path:
        """For programs that speak SSH themselves: `ssh -F <ssh_config> <ssh_host>`."""
        return self.nodes[0].config

    @property
    def ssh_host(self) -> str:
        return self.nodes[0].alias

    def run(
        self,
        command: str | Sequence[str],
        *,
        node: int = 0,
        check: bool = True,
        capture: bool = True,
        timeout: float | None = None,
    ) -> Finished:
        """Run a command in the home there: a text is for the shell, several words arrive as they are.

        What it writes is returned, or without `capture` goes where this program's own output goes.
        `CommandFailed` if its exit code is not 0, unless `check` is off. After `timeout` seconds the
        connection is closed and `TimedOut` raised.
        """
        finished = remote.run(self._get_node(node), command, capture=capture, timeout=timeout)
        if check and finished.exit_code != 0:
            raise _failure(command, finished)
        return finished

    def upload(self, source: str | Path, place: str = "", *, node: int = 0) -> None:
        """Copy a file, or what is in a folder, to a place that is counted from the home there.

        Left out, it keeps its name. What is in a folder there besides stays.
        """
        remote.upload(self._get_node(node), Path(source), place)

    def download(self, place: str, target: str | Path = ".", *, node: int = 0) -> None:
        """Copy a file, or what is in a folder, from there. What is in a folder here besides stays."""
        remote.download(self._get_node(node), place, Path(target))

    def extend(self, hours: float) -> JobDetail:
        """Have more time; returns when it is granted."""
        asked = self.client.extend(self.id, hours)
        self.client.wait_for_operation(asked.operation_id)
        return self.refresh()

    def refresh(self) -> JobDetail:
        """Ask the server how it stands."""
        self.details = self.client.get(self.id)
        return self.details

    def release(self, *, wait: bool = False) -> None:
        """Give the GPUs back; `wait` until nothing is left of it. Nothing happens to one that is over."""
        release(self.client, self.id)
        if wait:
            self.details = self.client.wait_until_clean(self.id)

    def close(self) -> None:
        """What the end of a `with` does: give back what was reserved here. What was attached to goes on."""
        self._at_end.close()

    def at_end(self, callback: Callable[[], object]) -> None:
        """Do this when it is closed; the last comes first."""
        self._at_end.callback(callback)

    def _get_node(self, rank: int) -> Remote:
        return get_node(self.nodes, rank, self.id)


def reserve(
    gpu_type: str,
    gpus: int = 1,
    hours: float = DEFAULT_HOURS,
    *,
    timeout: float | None = None,
    tell: Callable[[JobEvent], None] | None = None,
    client: Client | None = None,
    **options: Unpack[Options],
) -> Box:
    """Ask for GPUs and wait until their dev server answers; `tell` hears what happens meanwhile.

    If that fails or takes more than `timeout` seconds, nothing stays reserved.
    """
    with ExitStack() as undo:
        used = client or undo.enter_context(connect())
        request = complete_request(build_request(gpu_type, gpus, hours, options), used.surroundings)
        reservation_id = used.reserve(request).reservation_id
        undo.callback(release, used, reservation_id)
        box = Box(used, used.wait_until(reservation_id, {Status.ACTIVE}, timeout=timeout, tell=tell))
        box.at_end(undo.pop_all().close)
        return box


def attach(reservation: str, *, client: Client | None = None) -> Box:
    """An active reservation by id, unique prefix of it, or name. It goes on when the box is closed."""
    with ExitStack() as undo:
        used = client or undo.enter_context(connect())
        details = used.get(reservation)
        if details.status in TERMINAL:
            ssh.delete_config(used.surroundings, details.job_id)
        box = Box(used, details)
        box.at_end(undo.pop_all().close)
        return box


def release(client: Client, reservation_id: str) -> None:
    """Ask for the end of a reservation, and forget how to reach it. What is over is left as it is."""
    ssh.delete_config(client.surroundings, reservation_id)
    client.cancel(reservation_id)


def get_node(nodes: Sequence[Remote], rank: int, reservation_id: str) -> Remote:
    if 0 <= rank < len(nodes):
        return nodes[rank]
    ranks = f"Its nodes are 0 to {len(nodes) - 1}." if len(nodes) > 1 else "It has one node, of rank 0."
    raise Usage(f"Reservation {ssh.id8(reservation_id)} has no node {rank}.", hint=ranks)


def _failure(command: str | Sequence[str], finished: Finished) -> CommandFailed:
    shown = command if isinstance(command, str) else " ".join(command)
    hint = ""
    if finished.exit_code == remote.SSH_FAILED:
        hint = "255 is also what OpenSSH ends with when the connection fails."
    return CommandFailed(
        f'"{shown}" ended with exit code {finished.exit_code}.',
        exit_code=finished.exit_code,
        output=finished.stderr or finished.stdout,
        hint=hint,
    )
