"""Probes of dev servers on SSH: each server whose state is unknown has a task that reads its SSH banner.

The probe starts when the pod has an address, and is repeated every few hundredths of a second, then more and
more slowly, until the server answers. Each change of the pod resets the pause. What counts is the address
that users get. It is probed only after the pod itself answers: a node refuses a few connections a second and
drops the others silently, so an early attempt would delay the answer by a second. Where the controllers
cannot reach the users' address, an answer of the pod's own address counts after a few seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial

from gpudev.adapters.kubernetes.config import Reach
from gpudev.adapters.kubernetes.facts import PodFacts
from gpudev.adapters.kubernetes.manifests.pod import SSH_PORT
from gpudev.adapters.kubernetes.view import View
from gpudev.domain.catalogue import MAX_GANG_NODES
from gpudev.domain.names import ReservationId
from gpudev.domain.server import ServerPhase, SshAddress
from gpudev.faults import FAULTS

_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 0.5
_GROWTH = 1.15
_PATIENCE_WITH_NODE_PORT = 3.0
_FIRST_CONNECT_SECONDS = 0.05
_CONNECT_GROWTH = 1.5
_POD_CONNECT_SECONDS = 0.25
"""Who is in the cluster is faster; who is not will not be heard at all."""
_READ_SECONDS = 2.0
_SECONDS_AFTER_NO = 1.0
_BANNER = b"SSH-"
_OVER = frozenset({ServerPhase.STOPPING, ServerPhase.UNPLACEABLE, ServerPhase.FAILED})
_SILENT_NODE_SECONDS = 10.0

_Target = tuple[str, int, bool]
"""The pod, its number of restarts, and whether its node is silent."""


class Answer(Enum):
    YES = auto()
    NO = auto()
    """Something is there, and does not speak SSH yet."""
    SILENCE = auto()
    """Nobody is there, or cannot be reached from here."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a dev server may be reached: as users do, and directly."""

    of_user: SshAddress | None
    of_pod: SshAddress | None


def addresses_of(pod: PodFacts, of_user: SshAddress | None) -> Addresses:
    return Addresses(of_user, SshAddress(pod.address, SSH_PORT) if pod.address else None)


async def wait_for_answer(reach: Reach, look: Callable[[], Addresses], news: asyncio.Event) -> None:
    """Return once it answers. `look` gives the addresses as far as they are known by now."""
    pause = _FIRST_PAUSE
    questions = _Questions(reach)
    while True:
        known = look()
        if known.of_pod is None or (known.of_user is None and reach is Reach.NODE):
            # Nothing leads to it before it has an address. That it has one will be news.
            await news.wait()
            news.clear()
            continue
        if await questions.ask(known):
            return
        pause = _FIRST_PAUSE if await _hear(news, pause) else min(_LONGEST_PAUSE, pause * _GROWTH)


class _Questions:
    """What was asked of one dev server, and what is to be asked next."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._clock = asyncio.get_running_loop().time
        self._connect_seconds = _FIRST_CONNECT_SECONDS
        self._asked_user_at = self._clock()
        self._reached_pod_at: float | None = None

    async def ask(self, known: Addresses) -> bool:
        """Whether it answers where it has to."""
        if self._reach is Reach.POD:
            return await _ask(known.of_pod, _READ_SECONDS) is Answer.YES
        if self._reach is Reach.NODE:
            return await self._ask_as_user(known.of_user)
        of_pod = await _ask(known.of_pod, _POD_CONNECT_SECONDS)
        if of_pod is Answer.YES:
            return await self._ask_as_user(known.of_user) or self._has_answered_long_enough()
        # Where a firewall says no in the name of the pod, users may still be answered.
        is_early = self._clock() - self._asked_user_at < _SECONDS_AFTER_NO
        return not (of_pod is Answer.NO and is_early) and await self._ask_as_user(known.of_user)

    async def _ask_as_user(self, address: SshAddress | None) -> bool:
        self._asked_user_at = self._clock()
        answer = await _ask(address, self._connect_seconds)
        if answer is Answer.SILENCE:
            self._connect_seconds = min(_READ_SECONDS, self._connect_seconds * _CONNECT_GROWTH)
        return answer is Answer.YES

    def _has_answered_long_enough(self) -> bool:
        now = self._clock()
        if self._reached_pod_at is None:
            self._reached_pod_at = now
        return now - self._reached_pod_at > _PATIENCE_WITH_NODE_PORT


async def _hear(news: asyncio.Event, seconds: float) -> bool:
    """Whether there is news within that time."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await news.wait()
    heard = news.is_set()
    news.clear()
    return heard


async def answers(address: SshAddress | None) -> bool:
    """Whether something there says that it speaks SSH."""
    return await _ask(address, _READ_SECONDS) is Answer.YES


async def _ask(address: SshAddress | None, connect_seconds: float) -> Answer:
    if address is None:
        return Answer.SILENCE
    try:
        async with asyncio.timeout(connect_seconds):
            reader, writer = await asyncio.open_connection(address.host, address.port)
    except ConnectionRefusedError:
        return Answer.NO
    except (OSError, TimeoutError):
        return Answer.SILENCE
    try:
        async with asyncio.timeout(_READ_SECONDS):
            is_ssh = await reader.readexactly(len(_BANNER)) == _BANNER
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return Answer.NO
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    return Answer.YES if is_ssh else Answer.NO


@dataclass(frozen=True, slots=True)
class _Probe:
    target: _Target
    task: asyncio.Task[None]
    news: asyncio.Event


class SshProbes:
    """One task for each member of which it is not known whether it answers."""

    def __init__(self, reach: Reach, view: View) -> None:
        self._reach = reach
        self._view = view
        self._probes: dict[tuple[ReservationId, int], _Probe] = {}

    def follow(self, reservation_id: ReservationId) -> None:
        """Start, restart or end the probes of this server after a change."""
        for rank in range(MAX_GANG_NODES):
            self._follow_member(reservation_id, rank)

    def _follow_member(self, reservation_id: ReservationId, rank: int) -> None:
        key = (reservation_id, rank)
        pod = self._view.find_pod(reservation_id, rank)
        target = self._target_for(pod) if pod is not None else None
        probe = self._probes.get(key)
        if probe is not None and probe.target != target:
            probe.task.cancel()
            del self._probes[key]
        if pod is None or target is None:
            return
        if self._reach is Reach.PROBE:
            self._view.note_answer(pod, answers=pod.container.is_probed_ready)
        elif key in self._probes:
            self._probes[key].news.set()
        else:
            news = asyncio.Event()
            task = asyncio.get_running_loop().create_task(self._work(pod, target, news))
            self._probes[key] = _Probe(target, task, news)

    def stop(self) -> None:
        for probe in self._probes.values():
            probe.task.cancel()
        self._probes.clear()

    def _target_for(self, pod: PodFacts) -> _Target | None:
        if not pod.is_bound or pod.node is None or self._view.observe_member(pod).phase in _OVER:
            return None
        node = self._view.find_node(pod.node)
        if node is None:
            return None
        is_silent = not node.is_ready
        is_known = self._reach is not Reach.PROBE and self._view.has_answered(pod)
        return None if is_known and not is_silent else (pod.uid, pod.container.restarts, is_silent)

    async def _work(self, pod: PodFacts, target: _Target, news: asyncio.Event) -> None:
        """One server that cannot be asked is asked again; the others do not notice."""
        await FAULTS.persist("answers", lambda: self._work_for(pod, target, news), pod.name)

    def _work_for(self, pod: PodFacts, target: _Target, news: asyncio.Event) -> Coroutine[None, None, None]:
        return self._probe_forever(pod) if target[2] else self._probe_until_ready(pod, news)

    async def _probe_until_ready(self, pod: PodFacts, news: asyncio.Event) -> None:
        await wait_for_answer(self._reach, partial(self._look, pod), news)
        self._view.note_answer(pod, answers=True)

    async def _probe_forever(self, pod: PodFacts) -> None:
        """The cluster has lost sight of the node; whether its users have, too, is part of the warning."""
        while True:
            places = self._look(pod)
            self._view.note_answer(pod, answers=await answers(places.of_user) or await answers(places.of_pod))
            await asyncio.sleep(_SILENT_NODE_SECONDS)

    def _look(self, pod: PodFacts) -> Addresses:
        current = self._view.find_pod(pod.owner, pod.member.rank) if pod.owner else None
        known = current if current is not None and current.uid == pod.uid else pod
        return addresses_of(known, self._view.find_address(known))
