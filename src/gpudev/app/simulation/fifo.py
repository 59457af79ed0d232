"""First come, first served and nothing else: nobody starts before those who came earlier have."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import datetime

from typing_extensions import override

from gpudev.app.simulation.queues import Queue, Run
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.names import NodeName


class FifoQueue(Queue):
    """Each goes to the fullest nodes that have room; extensions are always granted."""

    def __init__(self, fleet: Mapping[NodeName, int], policy: TimePolicy) -> None:
        super().__init__(fleet, policy)
        self._free = dict(fleet)
        self._line: deque[Run] = deque()

    @override
    def begin(self) -> None: ...

    @override
    def submit(self, run: Run) -> None:
        self._line.append(run)

    @override
    def cancel(self, run: Run) -> None:
        self._line.remove(run)

    @override
    def release(self, run: Run) -> None:
        for node in run.nodes:
            self._free[node] += run.asked.gpus

    @override
    def extend(self, run: Run, expires: datetime) -> bool:
        return True

    @override
    def look(self) -> None:
        while self._line and (nodes := self._choose(self._line[0])):
            run = self._line.popleft()
            for node in nodes:
                self._free[node] -= run.asked.gpus
            self.start(run, nodes)

    def _choose(self, run: Run) -> tuple[NodeName, ...]:
        fitting = sorted((free, node) for node, free in self._free.items() if free >= run.asked.gpus)
        if len(fitting) < run.asked.nodes:
            return ()
        return tuple(node for _, node in fitting[: run.asked.nodes])
