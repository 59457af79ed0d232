"""One small task for each dev server of which it is not known whether it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import partial

from gpudev.adapters.kubernetes.answering import Addresses, addresses_of, answers, wait_for_answer
from gpudev.adapters.kubernetes.config import Reach
from gpudev.adapters.kubernetes.facts import PodFacts
from gpudev.adapters.kubernetes.view import View
from gpudev.domain.catalogue import MAX_GANG_NODES
from gpudev.domain.names import ReservationId
from gpudev.domain.server import ServerPhase
from gpudev.faults import FAULTS

_OVER = frozenset({ServerPhase.STOPPING, ServerPhase.UNPLACEABLE, ServerPhase.FAILED})
_SILENT_NODE_SECONDS = 10.0

_Errand = tuple[str, int, bool]
"""Which life of which pod is asked, and whether its node is silent."""


@dataclass(frozen=True, slots=True)
class _Running:
    errand: _Errand
    task: asyncio.Task[None]
    news: asyncio.Event


class Followers:
    def __init__(self, reach: Reach, view: View) -> None:
        self._reach = reach
        self._view = view
        self._running: dict[tuple[ReservationId, int], _Running] = {}

    def follow(self, reservation_id: ReservationId) -> None:
        """See to it that the right thing is asked of this server, now that something about it changed."""
        for rank in range(MAX_GANG_NODES):
            self._follow_member(reservation_id, rank)

    def _follow_member(self, reservation_id: ReservationId, rank: int) -> None:
        key = (reservation_id, rank)
        pod = self._view.find_pod(reservation_id, rank)
        errand = self._errand_for(pod) if pod is not None else None
        running = self._running.get(key)
        if running is not None and running.errand != errand:
            running.task.cancel()
            del self._running[key]
        if pod is None or errand is None:
            return
        if self._reach is Reach.PROBE:
            self._view.note_answer(pod, answers=pod.is_probed_ready)
        elif key in self._running:
            self._running[key].news.set()
        else:
            news = asyncio.Event()
            task = asyncio.get_running_loop().create_task(self._work(pod, errand, news))
            self._running[key] = _Running(errand, task, news)

    def stop(self) -> None:
        for running in self._running.values():
            running.task.cancel()
        self._running.clear()

    def _errand_for(self, pod: PodFacts) -> _Errand | None:
        if not pod.is_bound or pod.node is None or self._view.observe_member(pod).phase in _OVER:
            return None
        node = self._view.find_node(pod.node)
        if node is None:
            return None
        is_silent = not node.is_ready
        is_known = self._reach is not Reach.PROBE and self._view.has_answered(pod)
        return None if is_known and not is_silent else (pod.uid, pod.restarts, is_silent)

    async def _work(self, pod: PodFacts, errand: _Errand, news: asyncio.Event) -> None:
        """One server that cannot be asked is asked again; the others do not notice."""
        await FAULTS.persist("answers", lambda: self._work_for(pod, errand, news), pod.name)

    def _work_for(self, pod: PodFacts, errand: _Errand, news: asyncio.Event) -> Coroutine[None, None, None]:
        return self._ask_again_and_again(pod) if errand[2] else self._ask_until_it_answers(pod, news)

    async def _ask_until_it_answers(self, pod: PodFacts, news: asyncio.Event) -> None:
        await wait_for_answer(self._reach, partial(self._look, pod), news)
        self._view.note_answer(pod, answers=True)

    async def _ask_again_and_again(self, pod: PodFacts) -> None:
        """The cluster has lost sight of the node; whether its users have, too, is part of the warning."""
        while True:
            places = self._look(pod)
            self._view.note_answer(pod, answers=await answers(places.of_user) or await answers(places.of_pod))
            await asyncio.sleep(_SILENT_NODE_SECONDS)

    def _look(self, pod: PodFacts) -> Addresses:
        current = self._view.find_pod(pod.owner, pod.rank) if pod.owner else None
        known = current if current is not None and current.uid == pod.uid else pod
        return addresses_of(known, self._view.find_address(known))
