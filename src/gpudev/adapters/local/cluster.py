"""This machine as the cluster.

Every dev server has a record on disk, which says what was promised, and an `Upkeep`, which keeps the
promise. There is one owner of a state directory at a time; the next one finds the servers running.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
import uuid
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self, assert_never

import asyncssh
import structlog

from gpudev.adapters.local.allotment import Given, NoRoom, allot, list_nodes
from gpudev.adapters.local.announcements import Announcements
from gpudev.adapters.local.devserver.launcher import Launcher
from gpudev.adapters.local.devserver.order import StartOrder
from gpudev.adapters.local.nodes.fleet import Fleet
from gpudev.adapters.local.nodes.gpu import LocalGpu
from gpudev.adapters.local.notices import NoticeFolder
from gpudev.adapters.local.record import Record
from gpudev.adapters.local.records import Records
from gpudev.adapters.local.sandbox.isolation import Isolation
from gpudev.adapters.local.ssh_port import bind_any_port
from gpudev.adapters.local.state_lock import StateLock
from gpudev.adapters.local.upkeep import Surroundings, Upkeep, pause_after
from gpudev.domain.errors import ClusterUnavailable, Defect, Invalid
from gpudev.domain.idle import Usage
from gpudev.domain.names import ReservationId, id8
from gpudev.domain.notices import Notice
from gpudev.domain.server import ObservedServer, ServerSpec
from gpudev.ports.cluster import CapacityChanged, ClusterChange, ServerChanged, Snapshot

_log = structlog.get_logger(__name__)

_STARTS_PER_CORE = 4
_SECONDS_TO_WAIT_FOR_AN_END = 30


@dataclass(frozen=True, slots=True)
class LocalClusterConfig:
    state_dir: Path
    """Records, homes and workspaces; nobody else may read it, and no dev server sees it."""
    fleet: Fleet
    isolation: Isolation
    read_only_paths: tuple[str, ...] = ()
    """Directories of the machine that sandboxed servers may read, besides the system's."""


class LocalCluster:
    """The `Cluster` of one machine; an async context manager that owns its state directory."""

    def __init__(self, config: LocalClusterConfig) -> None:
        self._config = _checked(config)
        self._records = Records(self._config.state_dir)
        self._lock = StateLock(self._config.state_dir)
        self._launcher = Launcher(self._config.state_dir / "zygote.log")
        self._announcements = Announcements()
        self._servers: dict[str, Upkeep] = {}
        self._endings: dict[str, asyncio.Task[None]] = {}
        self._sweeping = asyncio.Lock()
        self._background: set[asyncio.Task[None]] = set()
        self._surroundings = Surroundings(
            fleet=config.fleet,
            launcher=self._launcher,
            starts=asyncio.Semaphore(_STARTS_PER_CORE * len(os.sched_getaffinity(0))),
            on_change=self._announce,
        )
        self._is_open = False

    async def __aenter__(self) -> Self:
        self._lock.take()
        with contextlib.ExitStack() as undo:
            undo.callback(self._lock.release)
            self._records.make_directories()
            records = self._records.list_records()
            undo.pop_all()
        self._is_open = True
        for record in records:
            self._take_over(record)
        self._do_meanwhile(self._sweep())
        self._do_meanwhile(self._launcher.warm_up())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of everything. The dev servers run on."""
        self._is_open = False
        for ending in self._endings.values():
            # The record says that it is to go, so the next owner will finish it.
            ending.cancel()
        await asyncio.gather(*(server.pause() for server in self._servers.values()))
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._launcher.close()
        self._announcements.close()
        self._lock.release()

    def snapshot(self) -> Snapshot:
        self._check_open()
        servers = {server.record.spec.reservation_id: server.observe() for server in self._servers.values()}
        return Snapshot(list_nodes(self._config.fleet, self._list_records()), MappingProxyType(servers))

    async def find_server(self, reservation_id: ReservationId) -> ObservedServer | None:
        self._check_open()
        server = self._find(reservation_id)
        if server is None:
            return None
        if not await server.is_on_disk():
            _log.error("record_removed_from_outside", reservation_id=reservation_id)
            await self._end(server)
            return None
        return server.observe()

    async def create_server(self, spec: ServerSpec) -> None:
        self._check_open()
        known = self._servers.get(id8(spec.reservation_id))
        if known is not None:
            _check_same(known.record, spec)
            return
        match allot(self._config.fleet, self._list_records(), spec):
            case Given(gpus):
                await self._create_placed(spec, gpus)
            case NoRoom(why):
                await self._create(Record(spec, _new_uid(), is_placed=False, detail=why))
            case other:
                assert_never(other)

    async def delete_server(self, reservation_id: ReservationId, uid: str) -> None:
        self._check_open()
        server = self._find(reservation_id)
        if server is not None and server.record.uid == uid:
            await self._end(server)

    async def tell(self, reservation_id: ReservationId, uid: str, notices: tuple[Notice, ...]) -> None:
        self._check_open()
        server = self._find(reservation_id)
        if server is not None and server.record.uid == uid:
            await server.tell(notices)

    async def measure(self, reservation_id: ReservationId, uid: str, now: datetime) -> Usage | None:
        self._check_open()
        server = self._find(reservation_id)
        return await server.measure(now) if server is not None and server.record.uid == uid else None

    def changes(self) -> AsyncIterator[ClusterChange]:
        return self._announcements.listen()

    async def _create_placed(self, spec: ServerSpec, gpus: tuple[LocalGpu, ...]) -> None:
        listener = bind_any_port({record.port for record in self._list_records()})
        host_key = asyncssh.generate_private_key("ssh-ed25519")
        record = Record(
            spec=spec,
            uid=_new_uid(),
            is_placed=True,
            gpus=gpus,
            port=listener.getsockname()[1],
            host_key=host_key.export_private_key().decode(),
            public_host_key=host_key.export_public_key().decode().strip(),
        )
        await self._create(record, listener)

    async def _create(self, record: Record, listener: socket.socket | None = None) -> None:
        server = self._server_of(record)
        # From here on its GPUs count as taken; nothing was awaited since they were chosen.
        self._servers[record.id8] = server
        try:
            await server.write_down()
        except OSError as error:
            del self._servers[record.id8]
            if listener is not None:
                listener.close()
            raise ClusterUnavailable(
                f"The dev server could not be written down in {self._config.state_dir}: {error.strerror}.",
                hint="Look for a full disk or a changed mode.",
            ) from error
        server.begin(listener)
        self._announce_room(record)

    async def _end(self, server: Upkeep) -> None:
        """Wait for its end. The work goes on if it takes longer, or if nobody waits any more."""
        ending = self._endings.get(server.record.uid)
        if ending is None:
            ending = self._do_meanwhile(self._see_off(server))
            self._endings[server.record.uid] = ending
        try:
            async with asyncio.timeout(_SECONDS_TO_WAIT_FOR_AN_END):
                await asyncio.shield(ending)
        except TimeoutError as error:
            raise ClusterUnavailable(
                f"The dev server {server.record.spec.name} has not ended yet.",
                hint="A process of it waits for a GPU or a disk, or the state directory cannot be written.",
            ) from error

    async def _see_off(self, server: Upkeep) -> None:
        """Try until it is gone: nobody asks a second time for what is stopping already."""
        for tries in itertools.count():
            await asyncio.sleep(pause_after(tries))
            try:
                await server.end()
                await asyncio.to_thread(self._records.set_aside, server.record)
            except OSError as error:
                _log.error("server_not_removed", uid=server.record.uid, error=str(error))
            else:
                break
        del self._endings[server.record.uid]
        del self._servers[server.record.id8]
        self._announce_room(server.record)
        self._do_meanwhile(self._sweep())

    async def _sweep(self) -> None:
        async with self._sweeping:
            await asyncio.to_thread(self._records.sweep)

    def _take_over(self, record: Record) -> None:
        """A server of an earlier owner of the state directory: look after it, or finish its deletion."""
        server = self._server_of(record)
        self._servers[record.id8] = server
        if record.is_leaving:
            self._endings[record.uid] = self._do_meanwhile(self._see_off(server))
        else:
            server.begin()

    def _server_of(self, record: Record) -> Upkeep:
        config = self._config
        order = StartOrder(config.state_dir, record.id8, config.isolation, config.read_only_paths)
        folder = NoticeFolder(self._records.home_of(record.id8))
        return Upkeep(record, order, self._records.files_of(record.id8), folder, self._surroundings)

    def _find(self, reservation_id: ReservationId) -> Upkeep | None:
        server = self._servers.get(id8(reservation_id))
        return server if server and server.record.spec.reservation_id == reservation_id else None

    def _list_records(self) -> list[Record]:
        return [server.record for server in self._servers.values()]

    def _announce(self, record: Record) -> None:
        self._announcements.tell(ServerChanged(record.spec.reservation_id))

    def _announce_room(self, record: Record) -> None:
        self._announce(record)
        self._announcements.tell(CapacityChanged(record.spec.gpu_type))

    def _do_meanwhile(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._finish_background)
        return task

    def _finish_background(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _log.error("background_work_failed", error=repr(error))

    def _check_open(self) -> None:
        if not self._is_open:
            raise ClusterUnavailable("This machine's cluster is not open.")


def _checked(config: LocalClusterConfig) -> LocalClusterConfig:
    state_dir = config.state_dir.resolve()
    for path in config.read_only_paths:
        if Path(path).resolve().is_relative_to(state_dir):
            raise Invalid(
                f"{path} is inside the state directory {state_dir}, which no dev server may see.",
                hint="Name another directory.",
                code="bad_read_only_path",
            )
    return replace(config, state_dir=state_dir)


def _check_same(record: Record, spec: ServerSpec) -> None:
    if record.spec.reservation_id != spec.reservation_id:
        raise Defect(
            f"The name {spec.name} already belongs to the dev server of reservation "
            f"{record.spec.reservation_id}, not of {spec.reservation_id}."
        )


def _new_uid() -> str:
    return str(uuid.uuid4())
