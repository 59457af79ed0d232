"""Keeping one recorded member of a dev server running: the part that a kubelet plays in a cluster.

The record says what is wanted. A process that is there already, left by an earlier owner of the state
directory, is adopted; one that ended is started again on the same port, with the same host key and home.
The listening port is also what keeps the starts of two owners of the state directory apart: only one can
have it. A copy of the listener stays here while the server runs, so that no other process can take the port
when the server ends. A member of a gang that has answered is not started again: the others do not know what
it forgot.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from gpudev.adapters.local.devserver.devserver import banner_of
from gpudev.adapters.local.devserver.launcher import Launcher, StartFailed
from gpudev.adapters.local.devserver.order import StartOrder
from gpudev.adapters.local.fleet import Fleet
from gpudev.adapters.local.gpus import LocalGpu
from gpudev.adapters.local.job_files import find_job
from gpudev.adapters.local.notices import NoticeFolder, write_to_terminals
from gpudev.adapters.local.ports import HOST, PortPool, PortTaken, bind_port, read_banner
from gpudev.adapters.local.record import Record, ServerProcesses
from gpudev.adapters.local.records import ServerFiles
from gpudev.adapters.local.server_processes import RunningServer, end_server, find_running
from gpudev.adapters.local.usage import UsageMeter
from gpudev.domain.errors import ClusterUnavailable, GpuDevError
from gpudev.domain.idle import Usage
from gpudev.domain.job import Job
from gpudev.domain.names import id8
from gpudev.domain.notices import Notice
from gpudev.domain.server import ObservedMember, ServerPhase, SshAddress
from gpudev.texts.fact import Fact, fact
from gpudev.texts.sentences import say

_log = structlog.get_logger(__name__)

_TRIES_BEFORE_IT_ANSWERED = 5
_SHORTEST_PAUSE = 0.1
_LONGEST_PAUSE = 30.0
_SECONDS_OF_GOOD_HEALTH = 10
"""A server that ran this long starts again at once; one that keeps ending is given pauses."""
_ANSWER_PAUSE = 0.25
_TRIES_TO_FREE_THE_PORT = 6
# Of their own: no start waits for a thread until servers have been measured or have ended.
_MEASURING = ThreadPoolExecutor(2, thread_name_prefix="measuring")
_ENDING = ThreadPoolExecutor(32, thread_name_prefix="ending")


@dataclass(frozen=True, slots=True)
class SharedResources:
    """What all servers of a cluster have in common."""

    fleet: Fleet
    launcher: Launcher
    starts: asyncio.Semaphore
    """How many servers may start at the same moment; more would only slow each other down."""
    ports: PortPool
    on_change: Callable[[Record], None]


class MemberLost(Exception):
    """A member of a gang has ended after it answered."""


class Upkeep:
    """One member: its record, its phase, and the task that keeps it running."""

    def __init__(
        self,
        record: Record,
        order: StartOrder,
        files: ServerFiles,
        notices: NoticeFolder,
        shared: SharedResources,
    ) -> None:
        self.record = record
        self._order = order
        self._files = files
        self._notices = notices
        self._meter = UsageMeter(files.directory)
        self._shared = shared
        self._phase = _first_phase(record)
        self._detail = record.detail
        self._progress: Fact | None = None
        self._task: asyncio.Task[None] | None = None
        self._listener: socket.socket | None = None
        self._has_begun = False
        self._starting: asyncio.Task[None] | None = None
        self._writing: asyncio.Task[None] | None = None
        self._log = _log.bind(reservation_id=record.spec.reservation_id, uid=record.uid)

    def observe(self) -> ObservedMember:
        is_reachable = self.record.is_placed and self.record.port != 0
        return ObservedMember(
            node=self.record.node,
            phase=self._phase,
            rank=self.record.rank,
            address=self._address if is_reachable else None,
            host_keys=(self.record.public_host_key,) if is_reachable else (),
            detail=self._detail,
            progress=self._progress,
        )

    def wait_for_port(self, why: Fact) -> None:
        """It has no port yet, so it cannot be started; whoever waits for it is told why."""
        self._progress = why
        self._set_phase(ServerPhase.STARTING, why)

    def assign(self, record: Record) -> None:
        """What it waited for is there: this is its record now."""
        self.record = record
        self._progress = None

    async def is_on_disk(self) -> bool:
        """A fresh look at whether the record is still there."""
        found = await asyncio.to_thread(self._files.find_record)
        return found is not None and found.uid == self.record.uid

    async def tell(self, notices: tuple[Notice, ...]) -> None:
        """On the terminals first: whoever is killed in between shows it twice rather than never."""
        processes = self._files.find_processes()
        if processes is not None:
            await asyncio.to_thread(self._tell, notices, processes)

    def _tell(self, notices: tuple[Notice, ...], processes: ServerProcesses) -> None:
        try:
            for notice in self._notices.list_new(notices):
                write_to_terminals(self.record.name, processes, notice.text)
            self._notices.replace(notices)
        except OSError as error:
            # A home that is full, for example. Those who are there have seen it, and are not shown it again.
            self._log.warning("notices_not_kept", error=str(error))

    async def find_job(self) -> Job | None:
        return await asyncio.to_thread(find_job, self._notices.home, id8(self.record.spec.reservation_id))

    async def measure(self, now: datetime) -> Usage | None:
        if self._phase is not ServerPhase.READY:
            return None
        return await asyncio.get_running_loop().run_in_executor(
            _MEASURING, self._meter.measure, self.record, now
        )

    async def write_down(self) -> None:
        await self._write(self.record)

    def begin(self, listener: socket.socket | None = None) -> None:
        """Keep it running from now on; `listener`, which it owns now, has its port if that is bound."""
        self._listener = listener
        if self.record.is_placed:
            self._task = asyncio.create_task(self._run(), name=f"upkeep-{self.record.key}")
            self._task.add_done_callback(self._note_end)

    async def pause(self) -> None:
        """Stop looking after it. The server itself runs on, and what has begun is seen through."""
        await self._halt()
        if self._listener is not None:
            self._listener.close()

    async def _halt(self) -> None:
        if self._task is not None:
            self._task.cancel()
        begun = [task for task in (self._task, self._starting, self._writing) if task is not None]
        await asyncio.gather(*begun, return_exceptions=True)

    async def end(self) -> None:
        """Take it down with every process in it. That it is to go is written down first."""
        self._set_phase(ServerPhase.STOPPING)
        if not self.record.is_leaving:
            await self._write(replace(self.record, is_leaving=True))
        await self._halt()
        if self.record.is_placed and self.record.port:
            await self._end_processes()
            self._return_port()

    def _return_port(self) -> None:
        listener, self._listener = self._listener, None
        if listener is None:
            self._shared.ports.reclaim(self.record.port)
        else:
            self._shared.ports.give_back(listener)

    async def _end_processes(self) -> None:
        """Until nothing has the port: a start that an earlier owner ordered may still be under way.

        Where the port is held here, no earlier owner's start can have it.
        """
        for tries in itertools.count():
            await asyncio.sleep(pause_after(tries))
            has_ended = await self._try_to_end()
            # If somebody else has taken the port meanwhile, it will not become free.
            is_free = self._listener is not None or _is_free(self.record.port)
            if has_ended and (is_free or tries >= _TRIES_TO_FREE_THE_PORT):
                return

    async def _try_to_end(self) -> bool:
        try:
            await self._end_what_runs()
        except ClusterUnavailable as error:
            self._log.error("server_does_not_end", detail=error.message)
            return False
        return True

    async def _end_what_runs(self) -> None:
        processes = self._files.find_processes()
        await asyncio.get_running_loop().run_in_executor(_ENDING, end_server, self.record.name, processes)

    async def _run(self) -> None:
        try:
            await self._keep_running()
        except MemberLost:
            self._detail = fact("gang_member_ended")
        self._set_phase(ServerPhase.FAILED, self._detail)

    async def _keep_running(self) -> None:
        """Until it is given up."""
        loop = asyncio.get_running_loop()
        failures = 0
        while self._may_try(failures):
            await asyncio.sleep(pause_after(failures))
            try:
                running = await self._adopt_or_start()
            except (StartFailed, OSError, ClusterUnavailable) as error:
                failures += 1
                self._note_failure(_find_fact(error), failures)
                continue
            began = loop.time()
            await self._follow(running)
            failures = 0 if loop.time() - began > _SECONDS_OF_GOOD_HEALTH else failures + 1

    def _may_try(self, failures: int) -> bool:
        """A server that answered once has somebody's work in it: it is never given up."""
        return self.record.has_answered or failures < _TRIES_BEFORE_IT_ANSWERED

    async def _adopt_or_start(self) -> RunningServer:
        found = find_running(self._files.find_processes())
        if found is not None:
            self._log.info("server_adopted", pid=found.pid)
            return found
        self._check_not_lost()
        self._starting = asyncio.create_task(self._start())
        await asyncio.shield(self._starting)
        started = find_running(self._files.find_processes())
        if started is None:
            raise StartFailed
        self._log.info("server_started", pid=started.pid, port=self.record.port)
        return started

    def _check_not_lost(self) -> None:
        if self.record.gang is not None and self.record.has_answered:
            raise MemberLost

    async def _start(self) -> None:
        async with self._shared.starts:
            listener = await self._take_port()
            await self._refresh_gpus()
            await self._shared.launcher.start(self._order, listener)

    async def _take_port(self) -> socket.socket:
        """The listener that is held here, or a new one; nothing of the last life is left then."""
        if self._listener is None or self._has_begun:
            await self._end_what_runs()
        self._has_begun = True
        if self._listener is None:
            self._listener = await self._bind_again()
        return self._listener

    async def _bind_again(self) -> socket.socket:
        """The recorded port. One that nobody has been told of is given up to whoever else has it."""
        try:
            return bind_port(self.record.port)
        except PortTaken:
            banner = await read_banner(self._address)
            is_promised = self.record.has_answered or self.record.gang is not None
            if is_promised or banner in ("", self._banner):
                # Somebody counts on it, or a start that an earlier owner ordered may have it.
                raise
        (listener,) = self._shared.ports.take()
        await self._write(replace(self.record, port=listener.getsockname()[1]))
        return listener

    async def _refresh_gpus(self) -> None:
        """After a reboot a real GPU may have another device file."""
        gpus = tuple(self._refresh(gpu) for gpu in self.record.gpus)
        if gpus != self.record.gpus:
            await self._write(replace(self.record, gpus=gpus))

    def _refresh(self, gpu: LocalGpu) -> LocalGpu:
        present = self._shared.fleet.find_gpu(gpu.visible_name)
        if present is None and not gpu.is_simulated:
            raise ClusterUnavailable("gpu_gone", gpu=gpu.visible_name)
        return present or gpu

    async def _follow(self, running: RunningServer) -> None:
        """Until it ends; READY from the moment that it answers."""
        answering = asyncio.create_task(self._wait_for_answer())
        try:
            await running.wait()
            self._log.warning("server_ended", pid=running.pid)
            self._check_not_lost()
            self._set_phase(ServerPhase.STARTING, fact("server_ended_and_starts_again"))
        finally:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
            running.close()

    async def _wait_for_answer(self) -> None:
        while (banner := await read_banner(self._address)) != self._banner:
            self._detail = fact("server_silent", port=self.record.port, banner=repr(banner))
            await asyncio.sleep(_ANSWER_PAUSE)
        if not self.record.has_answered:
            await self._write(replace(self.record, has_answered=True))
        self._set_phase(ServerPhase.READY)

    @property
    def _banner(self) -> str:
        return f"SSH-2.0-{banner_of(self.record.key)}"

    @property
    def _address(self) -> SshAddress:
        return SshAddress(HOST, self.record.port)

    async def _write(self, record: Record) -> None:
        """Write after write, each to its end: one that was overtaken would bring an old record back."""
        self.record = record
        self._writing = asyncio.create_task(self._write_after(self._writing, record))
        await asyncio.shield(self._writing)

    async def _write_after(self, earlier: asyncio.Task[None] | None, record: Record) -> None:
        if earlier is not None:
            await asyncio.wait({earlier})
        await asyncio.to_thread(self._files.write_record, record)

    def _note_failure(self, told: Fact | None, failures: int) -> None:
        detail = told or self._find_last_words() or fact("server_ended_while_starting")
        log = str(self._files.log_path)
        self._log.error("server_not_started", failures=failures, detail=say(detail), log=log)
        self._set_phase(ServerPhase.STARTING, detail)

    def _find_last_words(self) -> Fact | None:
        words = self._files.read_last_words()
        return fact("words", words=words) if words else None

    def _note_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()):
            self._log.error("upkeep_failed", exc_info=error)
            self._set_phase(ServerPhase.FAILED, fact("upkeep_failed", error=repr(error)))

    def _set_phase(self, phase: ServerPhase, detail: Fact | None = None) -> None:
        if self._phase is ServerPhase.STOPPING:
            # There is no way back: a late answer of a server that is to go changes nothing.
            return
        self._phase = phase
        self._detail = detail
        self._shared.on_change(self.record)


def _first_phase(record: Record) -> ServerPhase:
    if record.is_leaving:
        return ServerPhase.STOPPING
    return ServerPhase.STARTING if record.is_placed else ServerPhase.UNPLACEABLE


def pause_after(failures: int) -> float:
    """No pause at first, then twice as long each time."""
    return min(_LONGEST_PAUSE, _SHORTEST_PAUSE * 2 ** (failures - 1)) if failures else 0.0


def _find_fact(error: Exception) -> Fact | None:
    """What the error tells; None: nothing."""
    if isinstance(error, GpuDevError):
        return error.fact
    return fact("words", words=str(error)) if str(error) else None


def _is_free(port: int) -> bool:
    try:
        bind_port(port).close()
    except PortTaken:
        return False
    return True
