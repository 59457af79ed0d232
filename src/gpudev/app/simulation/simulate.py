"""Replay one trace through the kept plan and through plain first come, first served."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from typing_extensions import override

from gpudev.app.simulation.findings import Findings, find_out
from gpudev.app.simulation.planned import PlannedQueue
from gpudev.app.simulation.queues import Queue, Run
from gpudev.app.simulation.workload import Trace
from gpudev.domain.errors import Invalid
from gpudev.domain.expiry import TimePolicy
from gpudev.domain.names import NodeName
from gpudev.domain.policy import ALIKE, SharingPolicy


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


@dataclass(frozen=True, slots=True)
class Scene:
    """What a trace is replayed on."""

    nodes: int
    gpus_per_node: int = 8
    gpu_type: str = ""
    policy: TimePolicy = field(default_factory=TimePolicy)
    sharing: SharingPolicy = ALIKE

    @property
    def fleet(self) -> dict[NodeName, int]:
        return {NodeName(f"node-{number:03}"): self.gpus_per_node for number in range(self.nodes)}


def simulate(scene: Scene, trace: Trace) -> tuple[Findings, ...]:
    """What came of it with the plan, and with nothing but an order."""
    if not trace:
        raise Invalid("trace_is_empty", code="empty_trace")
    fitting = tuple(one for one in trace if one.gpus <= scene.gpus_per_node and one.nodes <= scene.nodes)
    if not fitting:
        raise Invalid(
            "no_request_fits", nodes=scene.nodes, gpus_per_node=scene.gpus_per_node, code="empty_trace"
        )
    users = frozenset(one.user for one in fitting)
    queues: dict[str, Queue] = {
        "plan": PlannedQueue(scene.fleet, scene.policy, scene.sharing, scene.gpu_type, users),
        "fifo": FifoQueue(scene.fleet, scene.policy),
    }
    slots = scene.nodes * scene.gpus_per_node
    return tuple(find_out(name, queue.replay(fitting), slots) for name, queue in queues.items())
