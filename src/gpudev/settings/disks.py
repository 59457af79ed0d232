"""The storage of disks."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings

from gpudev.settings.reading import CONFIG


class DiskSettings(BaseSettings):
    """Disks of users, where they are not directories of one machine."""

    model_config = CONFIG

    zone: str = Field("", validation_alias="GPU_DEV_DISK_ZONE", pattern=r"^[a-z0-9-]*$")
    """Availability zone in which a disk is made that nobody uses yet. Empty: the first of the region."""
    kms_key: str = Field("", validation_alias="GPU_DEV_DISK_KMS_KEY")
    """Key that volumes are encrypted with, which they always are. Empty: the account's own key for EBS."""
    listing_bucket: str = Field("", validation_alias="GPU_DEV_DISK_LISTING_BUCKET")
    """S3 bucket for the file listings of snapshots. Empty: they are kept in the database."""
