"""What we keep of each object of the cluster: the few facts that decisions need, read from JSON.

Pure. With `pod_status` and `disks.claims` the only reader of that JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction

from gpudev.adapters.kubernetes.api_objects import (
    GPU_TYPE,
    HOST_KEY,
    INCARNATION,
    NODE,
    PORT_SLOT,
    PROFILING,
    RANK,
    SIMULATED,
    SLOTS,
    Json,
    annotations_of,
    is_port_slot,
    labels_of,
    name_of,
    owner_of,
    uid_of,
)
from gpudev.adapters.kubernetes.manifests.pod import TOLERATED
from gpudev.adapters.kubernetes.pod_status import (
    PodStatus,
    find_condition,
    find_last_end,
    find_oom,
    read_time,
    status_of,
)
from gpudev.domain.catalogue import Catalogue, parse_quantity
from gpudev.domain.names import NodeName, ReservationId, make_printable
from gpudev.domain.server import ServerPhase
from gpudev.texts.fact import Fact, fact

_ADDRESS_KINDS = ("ExternalIP", "InternalIP", "Hostname")
_ENDED = frozenset({"Succeeded", "Failed"})
_HARMLESS_TAINT = "PreferNoSchedule"
_NOT_COUNTED = ("cpu", "memory", "ephemeral-storage", "hugepages-")
_GIB = 1024**3
_KERNEL_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})", re.ASCII)
_MAPS_TMPFS = (6, 3)


@dataclass(frozen=True, slots=True)
class NodeFacts:
    name: NodeName
    gpu_type: str = ""
    """Empty for a node that no dev server goes to."""
    slots: int = 0
    is_ready: bool = True
    silent_since: datetime | None = None
    is_schedulable: bool = True
    address: str = ""
    is_profiling: bool = False
    is_simulated: bool = False
    zone: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    storage_gib: int = 0
    """Local disk that pods may have; 0 where the node does not report it."""
    has_user_namespaces: bool = False
    """Its runtime and its kernel can give a pod users of its own."""


@dataclass(frozen=True, slots=True)
class MemberFacts:
    """Which member of which dev server one of our pods is, and how users reach it."""

    rank: int = 0
    incarnation: str = ""
    """Of the gang that it is a member of; empty for a server of one pod."""
    service: str = ""
    host_key: str = ""


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """How often the container of one of our pods was started, and how it ended before."""

    restarts: int = 0
    is_probed_ready: bool = False
    last_end: Fact | None = None
    """How the container ended before it was started again; None if it never did."""
    oom_kills: int = 0
    """How often the container had ended when it last ran out of memory; 0 if its last end was another."""
    last_oom_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PodFacts:
    """A pod of anybody's, as far as it takes room; the rest is known of our own only."""

    key: str
    """Namespace and name."""
    name: str
    uid: str
    node: NodeName | None
    """Where it is, or where it is to be."""
    is_bound: bool
    takes_room: bool
    """It has not ended: what it asked for is counted."""
    requests: Mapping[str, int] = field(default_factory=dict)
    """So many of each countable thing: GPUs and their slices."""
    slots: int = 0
    """How much of a CPU node it takes."""
    owner: ReservationId | None = None
    member: MemberFacts = field(default_factory=MemberFacts)
    container: ContainerFacts = field(default_factory=ContainerFacts)
    address: str = ""
    status: PodStatus = field(default_factory=lambda: PodStatus(ServerPhase.STARTING))
    created_at: datetime | None = None
    version: int = field(default=0, compare=False)
    """When this was so, on the cluster's own clock."""

    @property
    def server_uid(self) -> str:
        """Of the dev server that this pod is, or is a member of."""
        return self.member.incarnation or self.uid


@dataclass(frozen=True, slots=True)
class ServiceFacts:
    name: str
    uid: str
    port: int
    is_port_slot: bool
    is_leaving: bool
    owner: ReservationId | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class EventFacts:
    """The last thing that the cluster said of one of our pods."""

    pod_uid: str
    told: Fact | None
    """None for what users need not know; it still ends what was said before."""
    at: datetime | None = None


def read_node(item: Json, catalogue: Catalogue, zone_label: str) -> NodeFacts:
    labels, status = labels_of(item), item.get("status", {})
    gpu_type = catalogue.find(labels.get(GPU_TYPE, ""))
    ready = find_condition(item, "Ready")
    is_ready = ready.get("status") == "True"
    return NodeFacts(
        name=NodeName(name_of(item)),
        gpu_type=gpu_type.name if gpu_type else "",
        slots=_count_slots(status.get("allocatable", {}), catalogue, gpu_type.name) if gpu_type else 0,
        is_ready=is_ready,
        silent_since=None if is_ready else read_time(ready.get("lastTransitionTime")),
        is_schedulable=is_ready and _takes_new_pods(item.get("spec", {})),
        address=_address_in(status.get("addresses", ())),
        is_profiling=labels.get(PROFILING) == "true",
        is_simulated=labels.get(SIMULATED) == "true",
        zone=labels.get(zone_label, ""),
        labels=labels,
        storage_gib=int(parse_quantity(status.get("allocatable", {}).get("ephemeral-storage", "0")) / _GIB),
        has_user_namespaces=_has_user_namespaces(status),
    )


def _has_user_namespaces(status: Json) -> bool:
    """The default runtime says so, and the kernel can map the users of a tmpfs, on which Secrets are."""
    handlers = status.get("runtimeHandlers") or ()
    default: Json = next((one for one in handlers if not one.get("name")), {})
    version = _KERNEL_VERSION.match(str(status.get("nodeInfo", {}).get("kernelVersion", "")))
    kernel = (int(version[1]), int(version[2])) if version else (0, 0)
    return bool((default.get("features") or {}).get("userNamespaces")) and kernel >= _MAPS_TMPFS


def _count_slots(allocatable: Mapping[str, str], catalogue: Catalogue, name: str) -> int:
    gpu_type = catalogue.get(name)
    if gpu_type.is_cpu_only:
        return gpu_type.slots_per_node
    return int(parse_quantity(allocatable.get(gpu_type.resource, "0")))


def _takes_new_pods(spec: Json) -> bool:
    taints = (taint for taint in spec.get("taints") or () if taint.get("effect") != _HARMLESS_TAINT)
    return not spec.get("unschedulable") and all(taint["key"] == TOLERATED for taint in taints)


def _address_in(addresses: Iterable[Mapping[str, str]]) -> str:
    by_kind = {address["type"]: address["address"] for address in addresses}
    return next((by_kind[kind] for kind in _ADDRESS_KINDS if kind in by_kind), "")


def read_pod(item: Json, namespace: str) -> PodFacts:
    spec, status = item["spec"], item.get("status", {})
    owner = owner_of(item) if item["metadata"]["namespace"] == namespace else None
    place = spec.get("nodeName") or annotations_of(item).get(NODE)
    common = PodFacts(
        key=f"{item['metadata']['namespace']}/{name_of(item)}",
        name=name_of(item),
        uid=uid_of(item),
        node=NodeName(place) if place else None,
        is_bound=bool(spec.get("nodeName")),
        takes_room=status.get("phase") not in _ENDED,
        requests=_count_requests(spec),
    )
    return common if owner is None else _with_own(common, item)


def _with_own(common: PodFacts, item: Json) -> PodFacts:
    return replace(
        common,
        owner=owner_of(item),
        slots=int(labels_of(item).get(SLOTS, "0")),
        member=_read_member(item),
        container=_read_container(item),
        address=item.get("status", {}).get("podIP", ""),
        status=status_of(item),
        created_at=read_time(item["metadata"].get("creationTimestamp")),
        version=int(item["metadata"]["resourceVersion"]),
    )


def _read_member(item: Json) -> MemberFacts:
    annotations = annotations_of(item)
    return MemberFacts(
        rank=int(annotations.get(RANK, "0")),
        incarnation=annotations.get(INCARNATION, ""),
        service=labels_of(item).get(PORT_SLOT, ""),
        host_key=annotations.get(HOST_KEY, ""),
    )


def _read_container(item: Json) -> ContainerFacts:
    containers = item.get("status", {}).get("containerStatuses") or ()
    oom_kills, last_oom_at = find_oom(item)
    return ContainerFacts(
        restarts=sum(container.get("restartCount", 0) for container in containers),
        is_probed_ready=find_condition(item, "Ready").get("status") == "True",
        last_end=find_last_end(item),
        oom_kills=oom_kills,
        last_oom_at=last_oom_at,
    )


def _count_requests(spec: Json) -> dict[str, int]:
    """Only what is counted in whole pieces; containers that run one after the other share."""
    together = _sum_requests(spec.get("containers") or ())
    before = [_sum_requests((container,)) for container in spec.get("initContainers") or ()]
    names = {*together, *(name for one in before for name in one)}
    return {name: max([together.get(name, 0), *(one.get(name, 0) for one in before)]) for name in names}


def _sum_requests(containers: Iterable[Json]) -> dict[str, int]:
    total: dict[str, Fraction] = {}
    for container in containers:
        for name, amount in (container.get("resources", {}).get("requests") or {}).items():
            if not name.startswith(_NOT_COUNTED):
                total[name] = total.get(name, Fraction(0)) + parse_quantity(amount)
    return {name: int(amount) for name, amount in total.items()}


def read_service(item: Json) -> ServiceFacts:
    ports = item["spec"].get("ports") or ()
    return ServiceFacts(
        name=name_of(item),
        uid=uid_of(item),
        port=next((port.get("nodePort", 0) for port in ports), 0),
        is_port_slot=is_port_slot(item),
        is_leaving="deletionTimestamp" in item["metadata"],
        owner=owner_of(item),
        created_at=read_time(item["metadata"].get("creationTimestamp")),
    )


def read_event(item: Json) -> EventFacts:
    reason, message = item.get("reason", ""), make_printable(str(item.get("message") or ""), 500).rstrip(".")
    return EventFacts(
        pod_uid=str(item.get("involvedObject", {}).get("uid", "")),
        told=_find_worth_telling(reason, message),
        at=read_time(item.get("lastTimestamp") or item.get("eventTime")),
    )


def _find_worth_telling(reason: str, message: str) -> Fact | None:
    match reason:
        case "Pulling":  # the kubelet says: Pulling image "name"
            return fact("image_fetching", image=message.removeprefix("Pulling image").strip(' "'))
        case "FailedMount":
            return fact("volume_not_mounted_yet", words=message)
        case "FailedCreatePodSandBox":
            return fact("sandbox_not_made_yet", words=message)
        case _:
            return None
