"""Where dev servers run, and the storage of disks."""

from __future__ import annotations

import os
import pwd
from ipaddress import ip_network
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings

from gpudev.settings.reading import CONFIG, split

_PORTS = 65536


class LocalSettings(BaseSettings):
    """One machine as the cluster; `gpu-dev up` sets these for the processes that it starts."""

    model_config = CONFIG

    state_dir: Path | None = Field(None, validation_alias="GPU_DEV_STATE_DIR")
    """Folder of the database, the dev servers and their homes. Without it there is no one-machine mode."""
    fleet: str = Field("", validation_alias="GPU_DEV_FLEET")
    """`test`, `prod`, `detect` or a fleet file. Empty: `detect` where there are NVIDIA GPUs, else `test`."""
    isolation: Literal["", "bubblewrap", "none"] = Field("", validation_alias="GPU_DEV_ISOLATION")
    """How dev servers are kept apart. Empty: bubblewrap where it works, else not at all."""
    isolation_note: str = Field("", validation_alias="GPU_DEV_ISOLATION_NOTE")
    """What would help where there is no sandbox; `gpu-dev up` sets it, and `gpu-dev status` shows it."""
    bubblewrap: str = Field("", validation_alias="GPU_DEV_BUBBLEWRAP")
    """Path of the `bwrap` program that makes sandboxes. Empty: the system's, then the one that is installed
    with gpu-dev, whichever works first."""
    cgroup: Path | None = Field(None, validation_alias="GPU_DEV_CGROUP")
    """Folder of a cgroup v2 in which gpu-dev may make one for each dev server, to limit memory, CPU and
    processes. Empty: the one that gpu-dev runs in, if it is delegated (`Delegate=yes` of systemd)."""
    read_only_paths: str = Field("", validation_alias="GPU_DEV_READ_ONLY_PATHS")
    """More folders of this machine that dev servers may read, separated by colons."""
    fewest_free_mib: int = Field(64, validation_alias="GPU_DEV_MIN_FREE_MIB", ge=0)
    """With fewer free MiB than this on the disk of the state folder, `/ready` says that it is full."""
    ssh_ports: str = Field("", validation_alias="GPU_DEV_SSH_PORTS", pattern=r"^(\d+-\d+)?$")
    """The ports that dev servers listen on, as `FIRST-LAST`; one for each GPU is bound when the controller
    starts. Empty: 30000 to 32767, and any other port once other programs have all of these."""

    @property
    def port_range(self) -> range | None:
        first, _, last = self.ssh_ports.partition("-")
        return range(int(first), int(last) + 1) if first else None

    @field_validator("ssh_ports")
    @classmethod
    def _check_ports(cls, value: str) -> str:
        first, _, last = value.partition("-")
        if value and not 0 < int(first) <= int(last) < _PORTS:
            raise ValueError(f"{value} is not a range of ports, such as 30000-32767")
        return value


class ClusterSettings(BaseSettings):
    """Where dev servers run, and which GPU types there are."""

    model_config = CONFIG

    kind: Literal["local", "kubernetes"] = Field("local", validation_alias="GPU_DEV_CLUSTER")
    """`local`: this machine. `kubernetes`: the pods of a cluster."""
    gpu_types_file: Path | None = Field(None, validation_alias="GPU_DEV_GPU_TYPES_FILE")
    """A TOML file with GPU types of one's own, or with the few that are on offer, for Kubernetes."""
    policy_file: Path | None = Field(None, validation_alias="GPU_DEV_POLICY_FILE")
    """A TOML file with quotas, fair share, maintenance and the node labels that may be asked for, see
    `docs/howto/policy.md`. It is read when a process starts. Left out: the default quotas where there is more
    than one user, and the order of coming."""


class KubernetesSettings(BaseSettings):
    """Dev servers as pods. Lists are separated by commas."""

    model_config = CONFIG

    namespace: str = Field("gpu-dev", validation_alias="GPU_DEV_KUBERNETES_NAMESPACE", min_length=1)
    """Namespace of the dev servers; nothing else should be in it."""
    kubeconfig: str = Field("", validation_alias="GPU_DEV_KUBERNETES_KUBECONFIG")
    """Path of a kubeconfig. Empty: this pod's service account, `KUBECONFIG`, or `~/.kube/config`."""
    image: str = Field(
        "pytorch/pytorch:2.8.0-cuda12.9-cudnn9-devel", validation_alias="GPU_DEV_CONTAINER_IMAGE"
    )
    """Image of dev servers. Without `sshd` and `sudo` in it, they are installed at every start."""
    pull_policy: Literal["IfNotPresent", "Always", "Never"] = Field(
        "IfNotPresent", validation_alias="GPU_DEV_KUBERNETES_PULL_POLICY"
    )
    """When nodes fetch an image."""
    pull_secret_names: str = Field("", validation_alias="GPU_DEV_KUBERNETES_PULL_SECRETS")
    """Names of Secrets in the namespace with which nodes fetch images."""
    reach: Literal["auto", "node", "pod", "probe"] = Field(
        "auto", validation_alias="GPU_DEV_KUBERNETES_REACH"
    )
    """How controllers find out that a dev server answers. `node`: by its node port. `pod`: by its own
    address. `auto`: by its node port, or by its own address where that cannot be reached. `probe`: they take
    the kubelet's word."""
    port_slots: int = Field(8, validation_alias="GPU_DEV_KUBERNETES_PORT_SLOTS", ge=0, le=1000)
    """How many NodePort Services are kept ready. A dev server that gets none has its port a second later."""
    workspace_gib: int = Field(100, validation_alias="GPU_DEV_KUBERNETES_WORKSPACE_GIB", ge=1)
    """The most that `/workspace` may hold, in GiB."""
    home_gib: int = Field(50, validation_alias="GPU_DEV_KUBERNETES_HOME_GIB", ge=1)
    """The most that a home without a disk may hold, in GiB."""
    storage_percent: int = Field(80, validation_alias="GPU_DEV_KUBERNETES_STORAGE_PERCENT", ge=1, le=100)
    """The part of a node's local disk that its dev servers share, by their GPUs: `ephemeral-storage`. A dev
    server that writes more than its share is evicted, and no other is."""
    user_namespaces: Literal["auto", "always", "never"] = Field(
        "auto", validation_alias="GPU_DEV_KUBERNETES_USER_NAMESPACES"
    )
    """Whether root in a dev server is an ordinary user on its node: `hostUsers: false`. `auto`: for dev
    servers without GPUs on nodes that support it, since NVIDIA's container toolkit does not; not with a home
    on a claim of a driver that may not support it. `always`, `never`: for all."""
    closed_network_names: str = Field("", validation_alias="GPU_DEV_KUBERNETES_CLOSED_NETWORKS")
    """Networks that dev servers may not reach, that of the database say, besides the metadata service."""

    @property
    def pull_secrets(self) -> tuple[str, ...]:
        return tuple(sorted(split(self.pull_secret_names)))

    @property
    def closed_networks(self) -> tuple[str, ...]:
        return tuple(sorted(split(self.closed_network_names)))

    @field_validator("closed_network_names")
    @classmethod
    def _check_networks(cls, value: str) -> str:
        for text in split(value):
            ip_network(text)
        return value


def default_state_dir() -> Path:
    """Where one machine keeps its state unless told otherwise."""
    home = os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir
    base = os.environ.get("XDG_DATA_HOME") or Path(home) / ".local" / "share"
    return Path(base) / "gpu-dev"


class DiskSettings(BaseSettings):
    """Disks of users, where dev servers are pods; on one machine they are directories."""

    model_config = CONFIG

    storage: Literal["none", "kubernetes", "aws"] = Field("none", validation_alias="GPU_DEV_DISK_STORAGE")
    """What disks are to dev servers that are pods. `kubernetes`: claims of a StorageClass. `aws`: volumes of
    EBS. `none`: there are no disks, and a home goes with its dev server."""
    storage_class: str = Field("", validation_alias="GPU_DEV_DISK_STORAGE_CLASS")
    """For `kubernetes`: the StorageClass of disks. Its `reclaimPolicy` must be `Retain`."""
    snapshot_class: str = Field("", validation_alias="GPU_DEV_DISK_SNAPSHOT_CLASS")
    """For `kubernetes`: the VolumeSnapshotClass of disks. Its `deletionPolicy` must be `Retain`."""
    zone_label: str = Field(
        "topology.kubernetes.io/zone", validation_alias="GPU_DEV_DISK_ZONE_LABEL", min_length=1
    )
    """The label of nodes that says which of them can mount a volume: those with the value that the volume's
    node affinity asks for."""
    zone: str = Field("", validation_alias="GPU_DEV_DISK_ZONE", pattern=r"^[a-z0-9-]*$")
    """Availability zone in which a disk is made that nobody uses yet. Empty: the first of the region."""
    kms_key: str = Field("", validation_alias="GPU_DEV_DISK_KMS_KEY")
    """Key that volumes are encrypted with, which they always are. Empty: the account's own key for EBS."""
    listing_bucket: str = Field("", validation_alias="GPU_DEV_DISK_LISTING_BUCKET")
    """S3 bucket for the file listings of snapshots. Empty: they are kept in the database."""
