"""The storage of disks: what is asked of it, and why it does not do it."""

from __future__ import annotations

from gpudev.texts.template import Text

TEXTS = {
    "no_storage": Text(
        "There is no storage for disks here.", hint="set GPU_DEV_DISK_STORAGE to kubernetes or aws."
    ),
    "listing_address_wrong": Text("{address} is not the address of a file listing."),
    "listing_cut": Text("... and {count:,} more"),
    # a cluster as storage
    "storage_forbidden": Text(
        "The cluster will not {what}. {cause}",
        hint="give the service account the roles in deploy/kubernetes/rbac-disks.yaml.",
    ),
    "storage_silent": Text("The cluster does not {what}. {cause}", hint="Wait."),
    "storage_refused": Text(
        "The cluster will not {what}. {cause}",
        hint="look at the classes in docs/howto/disks.md and at what the driver can do.",
    ),
    "storage_class_missing": Text(
        'There is no StorageClass "{name}" for disks.',
        hint="make it, and name it in GPU_DEV_DISK_STORAGE_CLASS.",
    ),
    "storage_class_deletes": Text(
        'StorageClass "{name}" deletes a volume with its claim.',
        hint="name one with reclaimPolicy Retain in GPU_DEV_DISK_STORAGE_CLASS.",
    ),
    "storage_class_cannot_grow": Text(
        'Volumes of StorageClass "{name}" cannot grow.',
        hint="set allowVolumeExpansion on it, if its driver can.",
    ),
    "snapshot_class_missing": Text(
        'There is no VolumeSnapshotClass "{name}" for disks.',
        hint="disks need snapshots: name one in GPU_DEV_DISK_SNAPSHOT_CLASS.",
    ),
    "snapshot_class_deletes": Text(
        'VolumeSnapshotClass "{name}" deletes what its snapshots have kept with them.',
        hint="name one with deletionPolicy Retain in GPU_DEV_DISK_SNAPSHOT_CLASS.",
    ),
    "volume_never_used": Text(
        "Volume {id} was never used, and keeps its size until then.",
        hint="nothing is to be done: it grows once it has been used.",
    ),
    "volume_attached_to_pod": Text("Volume {id} is attached to {holder}.", hint="end that pod first."),
    "claim_not_ours": Text("Claim {id} is not a disk of ours.", hint="look at who has made it."),
    "snapshot_not_ours": Text("Snapshot {id} is not of a disk of ours.", hint="look at who has made it."),
    "storage_object_of_another": Text("{name} was made by somebody else.", hint="rename it or remove it."),
    "storage_object_missing": Text("{name} is not there.", hint="Wait."),
    "no_ready_node_in_zone": Text("A node that is ready with {label}={zone} is not there.", hint="Wait."),
    "creation_time_missing": Text("{name} has no creation time."),
    # this machine as storage
    "disk_folders_unusable": Text(
        "The disks in {state_dir} cannot be used: {why}.", hint="Look for a full disk or a changed mode."
    ),
    "volume_attached_to_server": Text("Volume {id} is attached to {holder}.", hint="End that server first."),
    "snapshot_not_there": Text("Snapshot {id} is not there."),
    "volume_not_there": Text("Volume {id} is not there."),
    "file_replaced_meanwhile": Text("A file was replaced while it was copied"),
    "folder_moved_meanwhile": Text("A folder was moved while its tree was worked on"),
    # what is asked of it
    "to_find_disk": Text("find disk {id}"),
    "to_list_volumes": Text("list volumes"),
    "to_list_snapshots": Text("list snapshots"),
    "to_list_zones": Text("list zones"),
    "to_make_volume": Text("make a volume"),
    "to_grow_volume": Text("grow {id}"),
    "to_snapshot_volume": Text("make a snapshot of {id}"),
    "to_tag": Text("tag"),
    "to_untag": Text("untag"),
    "to_delete_volume": Text("delete volume {id}"),
    "to_delete_snapshot": Text("delete snapshot {id}"),
    "to_keep_listing": Text("keep a file listing"),
    "to_read_listing": Text("read a file listing"),
}
