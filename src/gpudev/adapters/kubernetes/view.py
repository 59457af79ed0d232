"""The cluster as it looks now, kept up to date change by change.

There is no I/O here. Changes come in from the watches and from the answers to our own calls; what comes out
is the port's `Snapshot`, and a hint for whoever has to look again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType

from gpudev.adapters.kubernetes.api_objects import Json
from gpudev.adapters.kubernetes.config import ZONE_LABEL
from gpudev.adapters.kubernetes.container_probes import ContainerProbes
from gpudev.adapters.kubernetes.facts import (
    EventFacts,
    NodeFacts,
    PodFacts,
    ServiceFacts,
    read_event,
    read_node,
    read_pod,
    read_service,
)
from gpudev.adapters.kubernetes.node_refusals import NodeRefusals
from gpudev.adapters.kubernetes.object_cache import ObjectCache, ServiceIndex
from gpudev.adapters.kubernetes.pod_status import PodStatus
from gpudev.adapters.kubernetes.script_reports import Gpus
from gpudev.domain.capacity import Node
from gpudev.domain.catalogue import Catalogue
from gpudev.domain.names import NodeName, ReservationId
from gpudev.domain.plans.orphans import Leftover
from gpudev.domain.server import Cause, ObservedMember, ObservedServer, ServerPhase, SshAddress
from gpudev.ports.cluster import CapacityChanged, ClusterChange, ServerChanged, Snapshot
from gpudev.texts.fact import Fact, fact

PODS, SERVICES = "pods", "services"
"""The kinds of what may be left over."""

_SAYS_IT_ALL = frozenset(
    {ServerPhase.STOPPING, ServerPhase.UNPLACEABLE, ServerPhase.FAILED, ServerPhase.CRASHING}
)


@dataclass(frozen=True, slots=True)
class Outside:
    """Whom the view tells, and what it is told by besides the cluster."""

    now: Callable[[], datetime]
    tell: Callable[[ClusterChange], None]
    look_again: Callable[[datetime, ReservationId], None]
    """Call `View.refresh_server` then: a pod that stays as it is will mean something else."""
    look_at_node_again: Callable[[datetime, NodeName], None]
    """Call `View.refresh_node` then."""
    pod_changed: Callable[[ReservationId], None]
    """One of our pods, or what is around it, is not as it was; also if no user could tell."""


class View:
    def __init__(
        self, namespace: str, catalogue: Catalogue, outside: Outside, zone_label: str = ZONE_LABEL
    ) -> None:
        self._catalogue = catalogue
        self._outside = outside
        self._namespace = namespace
        self.nodes: ObjectCache[NodeFacts] = ObjectCache(
            lambda item: read_node(item, catalogue, zone_label), self._node_changed
        )
        self.pods: ObjectCache[PodFacts] = ObjectCache(
            lambda item: read_pod(item, namespace), self._pod_changed
        )
        self.services: ObjectCache[ServiceFacts] = ObjectCache(read_service, self._service_changed)
        self.events: ObjectCache[EventFacts] = ObjectCache(read_event, self._event_changed)
        self._own_pods: defaultdict[ReservationId, dict[int, PodFacts]] = defaultdict(dict)
        self._pods_on: defaultdict[NodeName, dict[str, PodFacts]] = defaultdict(dict)
        self._service_index = ServiceIndex()
        self._owners: dict[str, ReservationId] = {}
        self._words: dict[str, EventFacts] = {}
        self._lost_nodes: set[NodeName] = set()
        self._probes = ContainerProbes()
        self._refusals = NodeRefusals()
        self._shown_nodes: dict[NodeName, Node] = {}
        self._own_pods_on: dict[NodeName, int] = {}
        self._servers: dict[ReservationId, ObservedServer] = {}
        self._snapshot: Snapshot | None = None

    # What is asked

    def snapshot(self) -> Snapshot:
        if self._snapshot is None:
            self._snapshot = Snapshot(
                nodes=tuple(self._shown_nodes.values()),
                servers=MappingProxyType(dict(self._servers)),
                port_slots=tuple(slot.name for slot in self.list_free_port_slots()),
            )
        return self._snapshot

    def list_free_port_slots(self) -> tuple[ServiceFacts, ...]:
        return self._service_index.list_free_port_slots()

    def list_leftovers(self) -> Iterator[Leftover]:
        """Our pods, and the Services that were made for one of them; a port slot belongs to nobody."""
        for pod in (pod for members in self._own_pods.values() for pod in members.values()):
            if pod.owner is not None and pod.created_at is not None:
                yield Leftover(PODS, pod.name, pod.uid, pod.owner, pod.created_at)
        for service in self.services:
            if service.owner is not None and service.created_at is not None:
                yield Leftover(SERVICES, service.name, service.uid, service.owner, service.created_at)

    def find_pod(self, reservation_id: ReservationId, rank: int = 0) -> PodFacts | None:
        return self._own_pods.get(reservation_id, {}).get(rank)

    def list_pods(self, reservation_id: ReservationId) -> tuple[PodFacts, ...]:
        """By rank."""
        members = self._own_pods.get(reservation_id, {})
        return tuple(members[rank] for rank in sorted(members))

    def list_services(self, reservation_id: ReservationId) -> tuple[ServiceFacts, ...]:
        return self._service_index.list_of(reservation_id)

    def find_node(self, name: NodeName) -> NodeFacts | None:
        return self.nodes.find(name)

    def gpus_of(self, pod: PodFacts) -> Gpus:
        node = self.find_node(pod.node) if pod.node else None
        if node is None or not node.gpu_type:
            return Gpus(0)
        resource = self._catalogue.get(node.gpu_type).resource
        return Gpus(pod.requests.get(resource, 0), node.is_simulated)

    def find_service(self, name: str) -> ServiceFacts | None:
        return self.services.find(name, self._namespace)

    def find_address(self, pod: PodFacts) -> SshAddress | None:
        """Where users reach it; None as long as the way is not complete."""
        service = self.find_service(pod.member.service)
        node = self.find_node(pod.node) if pod.node else None
        if service is None or node is None or not service.port or not node.address:
            return None
        return SshAddress(node.address, service.port)

    def observe(self, pods: Sequence[PodFacts]) -> ObservedServer:
        """The pods of a server, by rank; one of another incarnation waits until the first is gone."""
        first = pods[0]
        members = [pod for pod in pods if pod.server_uid == first.server_uid]
        inside = [ooms for pod in members for ooms in self._probes.list_ooms(pod)]
        moments = (
            *(pod.container.last_oom_at for pod in members if pod.container.oom_kills),
            *(ooms.last_at for ooms in inside),
        )
        return ObservedServer(
            reservation_id=first.owner or ReservationId(""),
            uid=first.server_uid,
            members=tuple(self.observe_member(pod) for pod in members),
            oom_kills=sum(pod.container.oom_kills for pod in members) + sum(ooms.count for ooms in inside),
            last_oom_at=max((moment for moment in moments if moment), default=None),
        )

    def observe_member(self, pod: PodFacts) -> ObservedMember:
        """One pod with all that is known around it."""
        status = self._status_of(pod)
        if self._probes.has_answered(pod) and status.phase not in _SAYS_IT_ALL:
            status = PodStatus(ServerPhase.READY)
        return ObservedMember(
            node=pod.node or NodeName(""),
            phase=status.phase,
            rank=pod.member.rank,
            address=self.find_address(pod) if status.phase is ServerPhase.READY else None,
            host_keys=(pod.member.host_key,) if pod.member.host_key else (),
            detail=status.detail,
            progress=status.detail if status.phase is ServerPhase.STARTING else None,
            cause=status.cause,
            warning=self._warning_about(pod),
        )

    # What is told

    def note_answer(self, pod: PodFacts, *, answers: bool) -> None:
        """Whether this life of the container answered on SSH when it was last asked."""
        self._probes.note_answer(pod, answers=answers)
        if pod.node is not None:
            self._refusals.forget(pod.node)
        if pod.owner is not None:
            self.refresh_server(pod.owner)

    def note_ooms(self, pod: PodFacts, count: int, now: datetime) -> None:
        """How often something in this life of the container was ended for want of memory, as it says."""
        if self._probes.note_ooms(pod, count, now) and pod.owner is not None:
            self.refresh_server(pod.owner)

    def has_answered(self, pod: PodFacts) -> bool:
        return self._probes.has_answered(pod)

    def refresh_server(self, reservation_id: ReservationId) -> None:
        pods = self.list_pods(reservation_id)
        before = self._servers.get(reservation_id)
        after = self.observe(pods) if pods else None
        for pod in pods:
            self._look_again(pod, reservation_id)
            self._note_refusal(pod)
        if after == before:
            return
        self._snapshot = None
        if after is None:
            del self._servers[reservation_id]
        else:
            self._servers[reservation_id] = after
        for node in {node for seen in (before, after) if seen is not None for node in seen.nodes}:
            self.refresh_node(node)
        self._outside.tell(ServerChanged(reservation_id))

    def _look_again(self, pod: PodFacts, reservation_id: ReservationId) -> None:
        at = pod.status.next_change(self._outside.now())
        if at is not None:
            self._outside.look_again(at, reservation_id)

    def _note_refusal(self, pod: PodFacts) -> None:
        now = self._outside.now()
        if pod.node is None or pod.status.at(now).phase is not ServerPhase.UNPLACEABLE:
            return
        until = self._refusals.note(pod.node, pod.uid, self._size_of(pod), now)
        if until is not None:
            self._outside.look_at_node_again(until, pod.node)

    def _room_came_back(self, pod: PodFacts) -> None:
        if pod.node is not None and not self._refusals.was_refused(pod.uid):
            self._refusals.forget(pod.node)

    def _size_of(self, pod: PodFacts) -> int:
        """In slots of its node."""
        node = self.find_node(pod.node) if pod.node else None
        if node is None or not node.gpu_type:
            return 0
        gpu_type = self._catalogue.get(node.gpu_type)
        return pod.slots if gpu_type.is_cpu_only else pod.requests.get(gpu_type.resource, 0)

    def _status_of(self, pod: PodFacts) -> PodStatus:
        status = pod.status.at(self._outside.now())
        if status.phase in _SAYS_IT_ALL or pod.node is None:
            return status
        node = self.find_node(pod.node)
        if pod.is_bound and node is None and self._is_lost(pod.node, pod):
            return PodStatus(ServerPhase.FAILED, fact("node_left_cluster", node=pod.node), Cause.NODE_LOST)
        if not pod.is_bound and (node is None or not node.is_schedulable):
            return PodStatus(ServerPhase.UNPLACEABLE, fact("node_takes_no_servers", node=pod.node))
        said = self._words.get(pod.uid)
        return PodStatus(status.phase, status.detail or (said.told if said else None), status.cause)

    def _is_lost(self, node: NodeName, pod: PodFacts) -> bool:
        """It was seen to go, or we know of everything until after the pod was there; else it may be new."""
        return node in self._lost_nodes or self.nodes.version >= pod.version

    def _warning_about(self, pod: PodFacts) -> Fact | None:
        node, answers = self.find_node(pod.node) if pod.node else None, self.has_answered(pod)
        if node is not None and not node.is_ready:
            return fact("node_silent", node=node.name, since=node.silent_since, answers=answers)
        if answers and self.find_address(pod) is None:
            return fact("service_removed", service=pod.member.service)
        return pod.container.last_end

    # What changed

    def _node_changed(self, before: NodeFacts | None, after: NodeFacts | None) -> None:
        node = after or before
        if before == after or node is None:
            return
        if after is None:
            self._lost_nodes.add(node.name)
        else:
            self._lost_nodes.discard(node.name)
        self.refresh_node(node.name)
        for pod in tuple(self._pods_on[node.name].values()):
            if pod.owner is not None:
                self._refresh_pod(pod.owner)

    def _pod_changed(self, before: PodFacts | None, after: PodFacts | None) -> None:
        if before == after:
            return
        if before is not None:
            self._take_away(before, is_gone=after is None or after.uid != before.uid)
        if after is not None:
            self._put_in_place(after)
        pods = [pod for pod in (before, after) if pod is not None]
        for owner in {pod.owner for pod in pods if pod.owner is not None}:
            self._refresh_pod(owner)
        for name in {pod.node for pod in pods if pod.node is not None}:
            self.refresh_node(name)

    def _put_in_place(self, pod: PodFacts) -> None:
        if pod.node is not None:
            self._pods_on[pod.node][pod.key] = pod
        if pod.owner is not None:
            self._own_pods[pod.owner][pod.member.rank] = pod
            self._service_index.lead_to(pod)
            self._owners[pod.uid] = pod.owner
            self._snapshot = None

    def _take_away(self, pod: PodFacts, *, is_gone: bool) -> None:
        if pod.node is not None:
            self._pods_on[pod.node].pop(pod.key, None)
        if is_gone:
            self._room_came_back(pod)
        if pod.owner is None:
            return
        self._own_pods[pod.owner].pop(pod.member.rank, None)
        if not self._own_pods[pod.owner]:
            del self._own_pods[pod.owner]
        self._service_index.end_leading_to(pod)
        self._snapshot = None
        if is_gone:
            self._owners.pop(pod.uid, None)
            self._words.pop(pod.uid, None)
            self._probes.forget(pod)

    def _refresh_pod(self, owner: ReservationId) -> None:
        self.refresh_server(owner)
        self._outside.pod_changed(owner)

    def _service_changed(self, before: ServiceFacts | None, after: ServiceFacts | None) -> None:
        service = after or before
        if before == after or service is None:
            return
        self._service_index.change(before, after)
        self._snapshot = None
        pod = self._service_index.find_pod(service.name)
        if pod is not None and pod.owner is not None:
            self._refresh_pod(pod.owner)

    def _event_changed(self, _before: EventFacts | None, after: EventFacts | None) -> None:
        """The newest word counts. That the cluster forgets an event after an hour changes nothing."""
        owner = self._owners.get(after.pod_uid) if after is not None else None
        if after is None or owner is None:
            return
        known = self._words.get(after.pod_uid)
        if known is None or known.at is None or after.at is None or after.at >= known.at:
            self._words[after.pod_uid] = after
            self.refresh_server(owner)

    def refresh_node(self, name: NodeName) -> None:
        before = self._shown_nodes.get(name)
        facts = self.find_node(name)
        after = self._show(facts) if facts is not None and facts.gpu_type else None
        if before == after:
            return
        self._snapshot = None
        own = sum(pod.takes_room for pod in self._pods_on[name].values() if pod.owner is not None)
        is_own_start = own > self._own_pods_on.get(name, 0) and _has_only_less_room(before, after)
        self._own_pods_on[name] = own
        if after is None:
            del self._shown_nodes[name]
        else:
            self._shown_nodes[name] = after
        if is_own_start:
            # What admission gave away is being taken. Nobody gets in for that.
            return
        for gpu_type in {node.gpu_type for node in (before, after) if node is not None}:
            self._outside.tell(CapacityChanged(gpu_type))

    def _show(self, facts: NodeFacts) -> Node:
        taken = sum(self._taken_by(pod) for pod in self._pods_on[facts.name].values())
        return Node(
            facts.name,
            facts.gpu_type,
            facts.slots,
            self._refusals.limit(facts.name, facts.slots - taken, self._outside.now()),
            facts.is_schedulable,
            facts.is_simulated,
            facts.zone,
            labels=facts.labels,
        )

    def _taken_by(self, pod: PodFacts) -> int:
        """Ours count from their creation on, before the scheduler has put them there."""
        is_turned_away = self._status_of(pod).phase is ServerPhase.UNPLACEABLE
        return 0 if not pod.takes_room or is_turned_away else self._size_of(pod)

    def put_pod(self, item: Json) -> PodFacts:
        """A pod as a call of ours was just answered."""
        self.pods.put(item)
        return read_pod(item, self._namespace)


def _has_only_less_room(before: Node | None, after: Node | None) -> bool:
    if before is None or after is None or after.free_slots >= before.free_slots:
        return False
    return replace(after, free_slots=before.free_slots) == before
