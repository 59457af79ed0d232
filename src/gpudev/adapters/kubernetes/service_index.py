"""The Services by what is asked of them: whose they are, which pod they lead to, and which lead to none yet.

With thousands of reservations nobody may go through all Services for the sake of one of them.
"""

from __future__ import annotations

from collections import defaultdict

from gpudev.adapters.kubernetes.facts import PodFacts, ServiceFacts
from gpudev.domain.names import ReservationId


class ServiceIndex:
    def __init__(self) -> None:
        self._of_owner: defaultdict[ReservationId, dict[str, ServiceFacts]] = defaultdict(dict)
        self._port_slots: dict[str, ServiceFacts] = {}
        self._pods: dict[str, PodFacts] = {}
        self._free: dict[str, ServiceFacts] = {}

    def list_of(self, owner: ReservationId) -> tuple[ServiceFacts, ...]:
        return tuple(self._of_owner[owner].values()) if owner in self._of_owner else ()

    def list_free_port_slots(self) -> tuple[ServiceFacts, ...]:
        return tuple(self._free.values())

    def find_pod(self, name: str) -> PodFacts | None:
        """Whom the Service of this name leads to."""
        return self._pods.get(name)

    def change(self, before: ServiceFacts | None, after: ServiceFacts | None) -> None:
        if before is not None:
            self._take_out(before)
        if after is not None:
            self._put_in(after)

    def lead_to(self, pod: PodFacts) -> None:
        self._pods[pod.member.service] = pod
        self._free.pop(pod.member.service, None)

    def end_leading_to(self, pod: PodFacts) -> None:
        self._pods.pop(pod.member.service, None)
        self._note_slot(pod.member.service)

    def _put_in(self, service: ServiceFacts) -> None:
        if service.owner is not None:
            self._of_owner[service.owner][service.name] = service
        if service.is_port_slot and not service.is_leaving:
            self._port_slots[service.name] = service
            self._note_slot(service.name)

    def _take_out(self, service: ServiceFacts) -> None:
        self._port_slots.pop(service.name, None)
        self._free.pop(service.name, None)
        if service.owner is not None:
            self._of_owner[service.owner].pop(service.name, None)
            if not self._of_owner[service.owner]:
                del self._of_owner[service.owner]

    def _note_slot(self, name: str) -> None:
        slot = self._port_slots.get(name)
        if slot is not None and name not in self._pods:
            self._free[name] = slot
