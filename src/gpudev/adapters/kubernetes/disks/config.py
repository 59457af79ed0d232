"""What an operator decides about disks that are claims."""

from __future__ import annotations

from dataclasses import dataclass

ZONE_LABEL = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class ClaimConfig:
    namespace: str
    storage_class: str
    """Volumes are claims of it. Its reclaim policy has to be Retain."""
    snapshot_class: str
    """Snapshots are of it. Its deletion policy has to be Retain."""
    zone_label: str = ZONE_LABEL
    """The label of nodes that volumes are tied to."""
