"""Nodes that turned a dev server away although they have GPUs: for want of CPU or memory, say.

Admission counts GPUs, and would choose the same node again at once. So a node that has refused a server has
room only for smaller ones for a while, ever longer, until somebody leaves it or a server starts there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from gpudev.domain.names import NodeName

_FIRST_PAUSE = timedelta(seconds=5)
_LONGEST_PAUSE = timedelta(minutes=5)
_REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class _Refusal:
    slots: int
    failures: int
    until: datetime


class NodeRefusals:
    def __init__(self) -> None:
        self._by_node: dict[NodeName, _Refusal] = {}
        self._refused: dict[str, None] = {}

    def note(self, node: NodeName, pod_uid: str, slots: int, now: datetime) -> datetime | None:
        """Until when the node is spared; None if this refusal is known."""
        if pod_uid in self._refused:
            return None
        self._remember(pod_uid)
        known = self._by_node.get(node)
        failures = known.failures + 1 if known else 1
        pause: timedelta = _FIRST_PAUSE * 2 ** min(failures - 1, 16)
        until = now + min(_LONGEST_PAUSE, pause)
        self._by_node[node] = _Refusal(slots, failures, until)
        return until

    def limit(self, node: NodeName, free: int, now: datetime) -> int:
        """The free slots of a node, as far as it can be believed that they are to be had."""
        known = self._by_node.get(node)
        if known is None or now >= known.until:
            return free
        return min(free, max(0, known.slots - 1))

    def was_refused(self, pod_uid: str) -> bool:
        return pod_uid in self._refused

    def forget(self, node: NodeName) -> None:
        """Somebody left it, or has started there."""
        self._by_node.pop(node, None)

    def _remember(self, pod_uid: str) -> None:
        self._refused[pod_uid] = None
        if len(self._refused) > _REMEMBERED:
            del self._refused[next(iter(self._refused))]
