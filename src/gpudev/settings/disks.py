"""The storage of disks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings

from gpudev.settings.reading import CONFIG


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
