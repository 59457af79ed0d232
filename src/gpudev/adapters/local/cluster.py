"""This machine as the cluster.

Every member of a dev server has a record on disk, which says what was promised, and an `Upkeep`, which
keeps the promise. There is one owner of a state directory at a time; the next one finds the servers running.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import socket
from collections.abc import AsyncIterator, Coroutine, Sequence
from datetime import datetime
from functools import partial
from types import MappingProxyType, TracebackType
from typing import Self, assert_never

import structlog

from gpudev.adapters.local.allotment import Given, NoRoom, allot, draw_up, draw_up_without_room, list_nodes
from gpudev.adapters.local.cluster_config import LocalClusterConfig, check_config
from gpudev.adapters.local.devserver.launcher import Launcher
from gpudev.adapters.local.devserver.order import StartOrder
from gpudev.adapters.local.disk_folders import find_home
from gpudev.adapters.local.notices import NoticeFolder
from gpudev.adapters.local.ports import NoPortFree, PortPool, choose_pool_size
from gpudev.adapters.local.record import Record, record_key
from gpudev.adapters.local.records import Records, StateLock
from gpudev.adapters.local.trees.sweeper import Sweeper
from gpudev.adapters.local.upkeep import SharedResources, Upkeep, pause_after
from gpudev.domain.catalogue import MAX_GANG_NODES
from gpudev.domain.errors import ClusterUnavailable, Defect
from gpudev.domain.idle import Usage, combine
from gpudev.domain.job import Job
from gpudev.domain.names import ReservationId, id8
from gpudev.domain.notices import Notice
from gpudev.domain.plans.orphans import Leftover
from gpudev.domain.server import ObservedServer, ServerSpec
from gpudev.domain.volume import FileListing
from gpudev.faults import FAULTS
from gpudev.ports.cluster import Announcements, CapacityChanged, ClusterChange, ServerChanged, Snapshot
from gpudev.texts.fact import Fact
from gpudev.texts.sentences import say

_log = structlog.get_logger(__name__)

_STARTS_PER_CORE = 4
_SECONDS_TO_WAIT_FOR_AN_END = 30
_SECONDS_BETWEEN_TRIES_FOR_PORTS = 5.0


class LocalCluster:
    """The `Cluster` of one machine; an async context manager that owns its state directory."""

    def __init__(self, config: LocalClusterConfig) -> None:
        self._config = check_config(config)
        self._records = Records(self._config.state_dir)
        self._lock = StateLock(self._config.state_dir)
        self._launcher = Launcher(self._config.state_dir / "zygote.log")
        self._announcements = Announcements()
        self._members: dict[str, Upkeep] = {}
        self._endings: dict[str, asyncio.Task[None]] = {}
        self._unwritten: set[str] = set()
        """Keys of members whose records are being written: that they are not on disk means nothing yet."""
        self._sweeper = Sweeper(self._records.list_leftovers)
        self._background: set[asyncio.Task[None]] = set()
        self._ports = PortPool(config.ports, self._list_ports)
        self._port_waits: set[asyncio.Task[None]] = set()
        self._shared = SharedResources(
            fleet=config.fleet,
            launcher=self._launcher,
            starts=asyncio.Semaphore(_STARTS_PER_CORE * len(os.sched_getaffinity(0))),
            ports=self._ports,
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
        self._ports.fill(
            choose_pool_size(sum(node.slots for node in self._config.fleet.nodes), len(self._list_ports()))
        )
        self._sweep()
        self._do_meanwhile(self._launcher.warm_up())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of everything. The dev servers run on."""
        self._is_open = False
        for task in (*self._endings.values(), *self._port_waits):
            # What is to go is recorded as such: the next owner finishes it. What waits for a port has no
            # record.
            task.cancel()
        await asyncio.gather(*(member.pause() for member in self._members.values()))
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._sweeper.close()
        await self._launcher.close()
        self._ports.close()
        self._announcements.close()
        self._lock.release()

    def snapshot(self) -> Snapshot:
        self._check_open()
        records = self._list_records()
        ids = dict.fromkeys(record.spec.reservation_id for record in records)
        servers = {id_: _observe(self._list_members(id_)) for id_ in ids}
        return Snapshot(list_nodes(self._config.fleet, records), MappingProxyType(servers))

    async def find_server(
        self,
        reservation_id: ReservationId,
        node_count: int = 1,  # noqa: ARG002 - they are all known here
    ) -> ObservedServer | None:
        self._check_open()
        for member in self._list_members(reservation_id):
            if member.record.key in self._unwritten or await member.is_on_disk():
                continue
            if self._members.get(member.record.key) is not member:
                continue
            if member.record.key not in self._endings:
                _log.error("record_removed_from_outside", reservation_id=reservation_id)
            # One that ends anyway loses its record a moment before it is forgotten.
            await self._end(member)
        members = self._list_members(reservation_id)
        return _observe(members) if members else None

    async def create_server(self, spec: ServerSpec) -> None:
        self._check_open()
        known = self._list_named(spec.reservation_id)
        for member in known:
            _check_same(member.record, spec)
        if not known:
            await self._create_new(spec)
        elif len(known) < len(known[0].record.spec.nodes):
            # The rest of a creation that was cut short, of which nobody was told, makes way for a new one.
            await self._end_all(known)
            await self.create_server(spec)

    async def delete_server(self, reservation_id: ReservationId, uid: str) -> None:
        self._check_open()
        members = self._list_members(reservation_id)
        await self._end_all([member for member in members if member.record.uid == uid])

    async def discard_port_slot(self, port_slot: str) -> None:
        """There are none: every server has a port of its own from the start."""

    def list_leftovers(self) -> tuple[Leftover, ...]:
        """None: a server has one record, and whoever owns the state directory has them all."""
        return ()

    async def remove_leftover(self, leftover: Leftover) -> None:
        """There are none."""

    async def tell(self, reservation_id: ReservationId, uid: str, notices: tuple[Notice, ...]) -> None:
        self._check_open()
        for member in self._list_members(reservation_id):
            if member.record.uid == uid:
                await member.tell(notices)

    async def list_home(self, reservation_id: ReservationId, uid: str) -> FileListing | None:  # noqa: ARG002 - the port's
        """The storage reads its snapshots itself."""
        return None

    async def find_job(self, reservation_id: ReservationId, uid: str) -> Job | None:
        self._check_open()
        first = next(iter(self._list_members(reservation_id)), None)
        return await first.find_job() if first is not None and first.record.uid == uid else None

    async def measure(self, reservation_id: ReservationId, uid: str, now: datetime) -> Usage | None:
        self._check_open()
        members = [member for member in self._list_members(reservation_id) if member.record.uid == uid]
        found = [usage for member in members if (usage := await member.measure(now)) is not None]
        return combine(found) if found and len(found) == len(members) else None

    def changes(self) -> AsyncIterator[ClusterChange]:
        return self._announcements.listen()

    async def _create_new(self, spec: ServerSpec) -> None:
        match allot(self._config.fleet, self._list_records(), spec):
            case Given() as given:
                await self._create_placed(spec, given)
            case NoRoom() as no_room:
                await self._create(draw_up_without_room(spec, no_room))
            case other:
                assert_never(other)

    async def _create_placed(self, spec: ServerSpec, given: Given) -> None:
        try:
            listeners = self._ports.take(len(spec.nodes))
        except NoPortFree as error:
            self._wait_for_ports(spec, given, error.fact)
        else:
            await self._create(draw_up(spec, given, _ports_of(listeners)), listeners)

    async def _create(self, records: Sequence[Record], listeners: Sequence[socket.socket] = ()) -> None:
        members = self._add_members(records)
        await self._begin(members, listeners)

    def _add_members(self, records: Sequence[Record]) -> list[Upkeep]:
        """From here on their GPUs count as taken; nothing was awaited since they were chosen."""
        members = [self._member_of(record) for record in records]
        made = {member.record.key: member for member in members}
        self._members |= made
        self._unwritten |= made.keys()
        return members

    async def _begin(self, members: Sequence[Upkeep], listeners: Sequence[socket.socket]) -> None:
        try:
            await self._write_down(members)
        except ClusterUnavailable:
            for listener in listeners:
                self._ports.give_back(listener)
            raise
        finally:
            self._unwritten -= {member.record.key for member in members}
        for member, listener in itertools.zip_longest(members, listeners):
            member.begin(listener)
            self._announce_room(member.record)

    def _wait_for_ports(self, spec: ServerSpec, given: Given, why: Fact) -> None:
        """Nothing is on disk until there are ports: the next owner of the state directory begins afresh."""
        _log.error("no_port_free", reservation_id=spec.reservation_id, detail=say(why))
        members = self._add_members(draw_up(spec, given, [0] * len(spec.nodes)))
        for member in members:
            member.wait_for_port(why)
        waiting = self._do_meanwhile(self._begin_with_ports(members, spec, given))
        self._port_waits.add(waiting)
        waiting.add_done_callback(self._port_waits.discard)

    async def _begin_with_ports(self, members: Sequence[Upkeep], spec: ServerSpec, given: Given) -> None:
        """Try until there are ports, or until the server is no longer wanted."""
        listeners: list[socket.socket] = []
        for tries in itertools.count(1):
            await asyncio.sleep(min(_SECONDS_BETWEEN_TRIES_FOR_PORTS, pause_after(tries)))
            if not all(self._is_wanted(member) for member in members):
                return
            with contextlib.suppress(NoPortFree):
                listeners = self._ports.take(len(members))
                break
        records = draw_up(spec, given, _ports_of(listeners), members[0].record.uid)
        for member, record in zip(members, records, strict=True):
            member.assign(record)
        await self._begin(members, listeners)

    def _is_wanted(self, member: Upkeep) -> bool:
        key = member.record.key
        return self._members.get(key) is member and key not in self._endings

    async def _write_down(self, members: Sequence[Upkeep]) -> None:
        """What was not written is forgotten; what was is known, and a part of a server until it is ended."""
        for number, member in enumerate(members):
            try:
                await member.write_down()
            except OSError as error:
                for unwritten in members[number:]:
                    del self._members[unwritten.record.key]
                raise ClusterUnavailable(
                    "server_not_written_down", state_dir=str(self._config.state_dir), words=error.strerror
                ) from error

    async def _end_all(self, members: Sequence[Upkeep]) -> None:
        await asyncio.gather(*(self._end(member) for member in members))

    async def _end(self, member: Upkeep) -> None:
        """Wait for its end. The work goes on if it takes longer, or if nobody waits any more."""
        key = member.record.key
        ending = self._endings.get(key)
        if ending is None:
            ending = self._do_meanwhile(self._see_off(member))
            self._endings[key] = ending
        try:
            async with asyncio.timeout(_SECONDS_TO_WAIT_FOR_AN_END):
                await asyncio.shield(ending)
        except TimeoutError as error:
            raise ClusterUnavailable("server_not_ended_yet", name=member.record.name) from error

    async def _see_off(self, member: Upkeep) -> None:
        """Try until it is gone: nobody asks a second time for what is stopping already."""
        work = partial(self._end_for_good, member)
        await FAULTS.persist("server_removal", work, member.record.name)
        del self._endings[member.record.key]
        del self._members[member.record.key]
        self._unwritten.discard(member.record.key)
        self._announce_room(member.record)
        self._sweep()

    async def _end_for_good(self, member: Upkeep) -> None:
        for tries in itertools.count():
            await asyncio.sleep(pause_after(tries))
            try:
                await member.end()
                await asyncio.to_thread(self._records.set_aside, member.record)
            except OSError as error:
                _log.error("server_not_removed", uid=member.record.uid, error=str(error))
            else:
                return

    def _sweep(self) -> None:
        """Begin to remove what servers that are gone have left."""
        self._sweeper.sweep()
        if self._config.cgroups is not None:
            with FAULTS.containing("cgroups"):
                self._config.cgroups.sweep()

    def _take_over(self, record: Record) -> None:
        """A member of an earlier owner of the state directory: look after it, or finish its deletion."""
        member = self._member_of(record)
        self._members[record.key] = member
        if record.is_leaving:
            self._endings[record.key] = self._do_meanwhile(self._see_off(member))
        else:
            member.begin()

    def _member_of(self, record: Record) -> Upkeep:
        config = self._config
        order = StartOrder(
            config.state_dir,
            record.key,
            config.isolation,
            config.read_only_paths,
            config.bubblewrap,
            config.cgroups,
        )
        folder = NoticeFolder(find_home(config.state_dir, record))
        return Upkeep(record, order, self._records.files_of(record.key), folder, self._shared)

    def _list_members(self, reservation_id: ReservationId) -> list[Upkeep]:
        named = self._list_named(reservation_id)
        return [member for member in named if member.record.spec.reservation_id == reservation_id]

    def _list_named(self, reservation_id: ReservationId) -> list[Upkeep]:
        """What bears the names of this reservation's members, by rank, whosever it is."""
        keys = (record_key(id8(reservation_id), rank) for rank in range(MAX_GANG_NODES))
        return [self._members[key] for key in keys if key in self._members]

    def _list_records(self) -> list[Record]:
        return [member.record for member in self._members.values()]

    def _list_ports(self) -> list[int]:
        return [record.port for record in self._list_records() if record.is_placed]

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
            raise ClusterUnavailable("machine_not_open")


def _ports_of(listeners: Sequence[socket.socket]) -> list[int]:
    return [listener.getsockname()[1] for listener in listeners]


def _observe(members: Sequence[Upkeep]) -> ObservedServer:
    record = members[0].record
    observed = tuple(member.observe() for member in members)
    return ObservedServer(record.spec.reservation_id, record.uid, observed)


def _check_same(record: Record, spec: ServerSpec) -> None:
    if record.spec.reservation_id != spec.reservation_id:
        raise Defect(
            "server_name_taken",
            name=spec.name,
            owner=record.spec.reservation_id,
            reservation_id=spec.reservation_id,
        )
