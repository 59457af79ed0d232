"""The pod that is a dev server: where it may run, what it may do, and what starts in it."""

from __future__ import annotations

from dataclasses import dataclass

from gpudev.adapters.kubernetes.api_objects import (
    DEV_SERVER,
    HOME,
    HOST_KEY,
    INCARNATION,
    NODE,
    PORT_SLOT,
    RANK,
    SLOTS,
    Json,
)
from gpudev.adapters.kubernetes.config import Homes, KubernetesConfig, Reach, UserNamespaces
from gpudev.adapters.kubernetes.manifests.environment import make_environment
from gpudev.adapters.kubernetes.manifests.metadata import gang_name, make_metadata, reservation_labels
from gpudev.adapters.kubernetes.manifests.resources import (
    STARTUP,
    Storage,
    Volumes,
    choose_storage,
    make_mounts,
    make_resources,
    make_volumes,
    share_storage,
    shared_memory,
)
from gpudev.adapters.kubernetes.startup import START
from gpudev.domain.names import NodeName
from gpudev.domain.server import ServerSpec

TOLERATED = "nvidia.com/gpu"
"""The taint that keeps others off GPU nodes."""

_SSHD_AND_SUDO = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
]
"""What sshd needs to become the user, and sudo to install a package: part of what every container has."""

_FOR_PROFILING = "SYS_ADMIN"
SSH_PORT = 22
CONTAINER = "dev"
_GRACE_SECONDS = 10
"""sshd ends at once; this is for the kernel to take everything else down with it."""


def make_pod_security() -> Json:
    return {"seccompProfile": {"type": "RuntimeDefault"}}


def make_container_security(*, is_profiling: bool) -> Json:
    """In the container sshd is root, and sudo must be let become so."""
    added = [*_SSHD_AND_SUDO, *([_FOR_PROFILING] if is_profiling else [])]
    return {
        "runAsUser": 0,
        "allowPrivilegeEscalation": True,
        "capabilities": {"drop": ["ALL"], "add": added},
    }


def make_tolerations() -> list[Json]:
    """A silent node does not end a reservation: only what is known to be lost does."""
    return [
        {"key": TOLERATED, "operator": "Exists"},
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
    ]


@dataclass(frozen=True, slots=True)
class PodOrder:
    """One pod: what was asked for, and what was made ready for it."""

    spec: ServerSpec
    config: KubernetesConfig
    service: str
    """Name of the Service that leads to it."""
    secret: str
    startup: str
    host_key: str
    """The public one."""
    is_profiling: bool = False
    node_storage_gib: int = 0
    """Local disk of its node; 0: not known."""
    node_slots: int = 0
    """How many its node reports, which may differ from the catalogue's; 0: not known."""
    has_user_namespaces: bool = False
    """Its node can give it users of its own."""
    rank: int = 0
    """Which member it is."""
    incarnation: str = ""
    """Of the gang, if it is a member of one."""
    home: str = ""
    """Name of the claim that is its home; empty: a home that goes with it."""

    @property
    def name(self) -> str:
        return self.spec.member_names[self.rank]

    @property
    def storage(self) -> Storage:
        config, gpus = self.config, self.spec.gpus_per_node
        gpu_type = config.catalogue.get(self.spec.gpu_type)
        node_slots = self.node_slots or gpu_type.slots_per_node
        slots = gpu_type.slots_for(gpus)
        share = share_storage(self.node_storage_gib, config.storage_percent, slots, node_slots)
        return choose_storage(share, 0 if self.home else config.home_gib, config.workspace_gib)

    @property
    def node(self) -> NodeName:
        return self.spec.nodes[self.rank]


def make_pod(order: PodOrder) -> Json:
    spec, config = order.spec, order.config
    gpu_type = config.catalogue.get(spec.gpu_type)
    labels = {
        **reservation_labels(spec.reservation_id, DEV_SERVER),
        PORT_SLOT: order.service,
        SLOTS: str(gpu_type.slots_for(spec.gpus_per_node)),
        **({HOME: order.home} if order.home else {}),
    }
    metadata = make_metadata(order.name, config.namespace, labels)
    metadata["annotations"] = {NODE: order.node, HOST_KEY: order.host_key, **_membership(order)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "containers": [_make_container(order)],
            "volumes": make_volumes(_volumes_of(order)),
            "affinity": {"nodeAffinity": _only_on(order.node)},
            "tolerations": make_tolerations(),
            "securityContext": make_pod_security(),
            **_user_namespace(order),
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            # The others of a gang hold connections to what has ended, so it is not started again.
            "restartPolicy": "Never" if spec.is_gang else "Always",
            "terminationGracePeriodSeconds": _GRACE_SECONDS,
            **_pull_secrets(config),
            **({"hostname": order.name, "subdomain": gang_name(spec)} if spec.is_gang else {}),
        },
    }


def _user_namespace(order: PodOrder) -> Json:
    return {"hostUsers": False} if _has_own_users(order) else {}


def _has_own_users(order: PodOrder) -> bool:
    """Automatic only where it works: NVIDIA's toolkit does not support it, nor do all filesystems."""
    if order.config.user_namespaces is not UserNamespaces.AUTO:
        return order.config.user_namespaces is UserNamespaces.ALWAYS
    is_known_home = not order.home or order.config.homes is Homes.EBS
    return order.has_user_namespaces and is_known_home and not order.spec.gpus_per_node


def _membership(order: PodOrder) -> Json:
    return {RANK: str(order.rank), INCARNATION: order.incarnation} if order.spec.is_gang else {}


def _make_container(order: PodOrder) -> Json:
    spec, config = order.spec, order.config
    gpu_type = config.catalogue.get(spec.gpu_type)
    return {
        "name": CONTAINER,
        "image": spec.image or gpu_type.image or config.image,
        "imagePullPolicy": config.pull_policy.value,
        "command": ["/bin/sh", f"{STARTUP}/{START}"],
        "env": make_environment(spec, order.secret, order.rank),
        "ports": [{"name": "ssh", "containerPort": SSH_PORT}],
        "resources": make_resources(spec.share, order.storage, gpu_type, spec.gpus_per_node),
        "securityContext": make_container_security(is_profiling=order.is_profiling),
        "volumeMounts": make_mounts(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **_probe(config.reach),
    }


def _volumes_of(order: PodOrder) -> Volumes:
    storage = order.storage
    return Volumes(
        startup=order.startup,
        keys=order.secret,
        shared_memory=shared_memory(order.spec.share),
        workspace=storage.at_most(order.config.workspace_gib),
        home_limit=storage.at_most(order.config.home_gib),
        rank=order.rank,
        is_gang=order.spec.is_gang,
        home=order.home,
    )


def _only_on(node: NodeName) -> Json:
    """The node that was chosen; the scheduler still binds the pod, and counts what it takes."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}
    }


def _pull_secrets(config: KubernetesConfig) -> Json:
    names = [{"name": name} for name in config.pull_secrets]
    return {"imagePullSecrets": names} if names else {}


def _probe(reach: Reach) -> Json:
    """Only where nothing else can tell: every probe is a connection that sshd writes a line about."""
    if reach is not Reach.PROBE:
        return {}
    return {"readinessProbe": {"tcpSocket": {"port": SSH_PORT}, "periodSeconds": 1, "failureThreshold": 1}}
