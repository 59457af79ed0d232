"""What probes of the containers themselves found; the cluster does not know it.

It is kept for each start of a container: a container that was restarted has not answered yet, and counts its
out-of-memory kills from zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gpudev.adapters.kubernetes.facts import PodFacts


@dataclass(frozen=True, slots=True)
class Ooms:
    """What was ended for want of memory in one life of a container, which itself went on."""

    count: int
    last_at: datetime


class ContainerProbes:
    def __init__(self) -> None:
        self._answers: dict[str, dict[int, bool]] = {}
        self._ooms: dict[str, dict[int, Ooms]] = {}

    def note_answer(self, pod: PodFacts, *, answers: bool) -> None:
        self._answers.setdefault(pod.uid, {})[pod.container.restarts] = answers

    def has_answered(self, pod: PodFacts) -> bool:
        return self._answers.get(pod.uid, {}).get(pod.container.restarts, False)

    def note_ooms(self, pod: PodFacts, count: int, now: datetime) -> bool:
        """Whether there are more than were known."""
        of_pod = self._ooms.setdefault(pod.uid, {}) if count else {}
        known = of_pod.get(pod.container.restarts)
        if count <= (known.count if known else 0):
            return False
        of_pod[pod.container.restarts] = Ooms(count, now)
        return True

    def list_ooms(self, pod: PodFacts) -> tuple[Ooms, ...]:
        """Those of all its lives."""
        return tuple(self._ooms.get(pod.uid, {}).values())

    def forget(self, pod: PodFacts) -> None:
        self._answers.pop(pod.uid, None)
        self._ooms.pop(pod.uid, None)
