"""Disks: what cannot be done with one, what happens to it, and what its storage says."""

from __future__ import annotations

from datetime import datetime

from gpudev.texts.template import Text, Values


def _busy(values: Values) -> str:
    whose = " of reservation {reservation:short}" if values["reservation"] else ""
    return values.fill(f'Disk "{{name}}" is {{state}}{whose}; that takes a moment.')


def _holder(values: Values) -> str:
    held_by = values["reservation"]
    return values.show(held_by, "short") if held_by else "another of yours"


def _hint_attached(values: Values) -> str:
    free = values.fill("one of your free disks ({free}), ") if values["free"] else ""
    return (
        f"Choose {free}a new one (--disk NEW_NAME) or none (--disk none), "
        f"or release it with: gpu-dev cancel {_holder(values)}"
    )


_REQUESTS = {
    "bad_disk_name": Text(
        '"{name}" is not a name for a disk.',
        hint='Use 1 to 50 letters, digits, dashes and underscores; "none" means no disk.',
    ),
    "bad_disk_size": Text("A disk of {size_gb} GB cannot be made.", hint="Ask for {least} to {most} GB."),
    "disk_cannot_shrink": Text(
        'Disk "{name}" has {size_gb} GB and cannot be made smaller or the same.',
        hint="Ask for more than {size_gb} GB.",
    ),
    "disk_not_found": Text('Disk "{name}" was not found.', hint="Yours are listed by: gpu-dev disk list"),
    "disk_is_deleted": Text(
        'Disk "{name}" is deleted.', hint="Have it back with: gpu-dev disk restore {name}"
    ),
    "disk_not_deleted": Text(
        'Disk "{name}" is not deleted.', hint="Deleted ones are listed by: gpu-dev disk list --deleted"
    ),
    "disk_purged": Text('Disk "{name}" was deleted more than 30 days ago and is gone.'),
    "disk_attached": Text(
        'Disk "{name}" is attached to reservation {reservation:short}.',
        hint="Release it with: gpu-dev cancel {reservation:short}",
    ),
    "wanted_disk_attached": Text(
        lambda values: values.fill('Disk "{name}" is attached to reservation ') + f"{_holder(values)}.",
        hint=_hint_attached,
    ),
    "disk_is_busy": Text(_busy, hint="Try again when it is free: gpu-dev disk show {name}"),
    "disk_is_changing": Text('Disk "{name}" is changing at the moment.', hint="Try again."),
    "disk_in_use_without_snapshot": Text(
        'Disk "{name}" is in use and has no snapshot yet.',
        hint="Its first is made when it is given back; copy it then.",
    ),
    "no_storage_for_disks": Text(
        "Not supported yet: disk_name. There is no storage for disks here.",
        hint="Ask for a home that is not kept: --disk none",
    ),
}

_DEFECTS = {
    "ready_disk_without_volume": Text('Disk "{name}" is ready and has no volume.'),
    "disk_cannot_become": Text('Disk "{name}" is {before} and cannot become {after}.'),
    "disk_may_not_be_destroyed": Text('Disk "{name}" is {state}: nothing of it may be destroyed.'),
    "disk_not_due_for_purge": Text('Disk "{name}" was not deleted, or its time is not over.'),
    "proof_of_another_volume": Text("The proof is not about volume {volume}: it stays."),
    "proof_of_another_snapshot": Text("The proof is not about snapshot {snapshot}: it stays."),
    "volume_not_replaced": Text("Volume {volume} is not known to be replaced: it stays."),
    "snapshot_is_kept": Text("Snapshot {snapshot} is among those that are kept."),
}


def _say_move(values: Values) -> str:
    origin = "{source}" if values["source"] else "elsewhere"
    return values.fill(f"Moved from {origin} to {{target}} by snapshot {{snapshot}}.")


def _say_failed_move(values: Values) -> str:
    words = " {detail}" if values["detail"] else ""
    return values.fill(
        f"Snapshot {{snapshot}} of volume {{volume}} failed.{words} "
        "Operator: remove that snapshot, so that another is made."
    )


def _say_failed_snapshot(values: Values) -> str:
    words = " {detail}" if values["detail"] else ""
    return values.fill(
        f"Snapshot {{snapshot}} failed; the data is on volume {{volume}}.{words} Another is made. "
        "Operator: if that goes on, look at the storage's limits and keys."
    )


def _say_import(values: Values) -> str:
    whose = '"{name}" of {username}' if values["name"] else "of nobody"
    return values.fill(f"Volume {{volume}} has no row: it becomes disk {whose}.")


def _say_sync(values: Values) -> str:
    moved = [
        f"{change['field']} {_show(change['field'], change['before'])} -> "
        f"{_show(change['field'], change['after'])}"
        for change in values["changes"]
    ]
    return values.fill('Disk "{name}" of {username}: ') + (", ".join(moved) or "a snapshot under way") + "."


def _show(field: str, value: object) -> str:
    return (
        str(datetime.fromisoformat(value)) if field.endswith("_at") and isinstance(value, str) else str(value)
    )


_VOLUME_LOST = 'Volume {volume} of disk "{name}" is gone. '

_DISK_EVENTS = {
    # events
    "disk_volume_ready": Text("Volume {volume} is ready."),
    "disk_volume_ready_for": Text("Volume {volume} is ready for reservation {reservation:short}."),
    "disk_reservation_over": Text("Reservation {reservation:short} is over."),
    "disk_unused": Text("Given back before it was used."),
    "disk_moved": Text(_say_move),
    "disk_grown": Text("It has {size} GB now."),
    "disk_restored": Text('Restored as "{name}".'),
    "disk_change_requested": Text("Requested by {username}."),
    "disk_snapshot_begun": Text("A snapshot of {volume} begins."),
    "disk_copy_begun": Text('A snapshot for the copy "{name}" begins.'),
    "disk_snapshot_complete": Text("Snapshot {snapshot} is complete."),
    "disk_purge_due": Text("The time to have it back is over."),
    "disk_purge_complete": Text("Nothing of it is left."),
    "disk_imported": Text("Volume {volume} was found without a row."),
    "disk_synced": Text("Brought in line with the storage."),
    # problems
    "disk_volume_failed": Text(
        "Volume {volume} is in an error state. "
        "Operator: look at it in the storage; it is left as it is, and the disk goes on once it is well."
    ),
    "disk_attached_elsewhere": Text(
        "Volume {volume} is attached to {holder} already. Operator: detach it there, once nothing uses it."
    ),
    "disk_attached_at_purge": Text(
        "Volume {volume} is attached to {holder}, and its disk is to be purged. Operator: detach it there."
    ),
    "disk_not_detached": Text(
        "Volume {volume} is still attached to {holder}, {minutes} minutes after the end. "
        "Operator: detach it there; the snapshot is then made by itself."
    ),
    "disk_not_detached_from_server": Text(
        "Volume {volume} is still attached to its dev server, {minutes} minutes after the end. "
        "Operator: detach it there; the snapshot is then made by itself."
    ),
    "disk_move_failed": Text(_say_failed_move),
    "disk_snapshot_failed": Text(_say_failed_snapshot),
    "disk_volume_lost": Text(
        _VOLUME_LOST + "There is no snapshot of it. Operator: find out who removed the volume."
    ),
    "disk_volume_lost_with_snapshot": Text(
        _VOLUME_LOST + "Its newest snapshot is {snapshot} of {at:time}. Operator: find out who removed the "
        "volume. Owner: gpu-dev disk clone {name} NEW_NAME makes a disk of that snapshot."
    ),
    "disk_storage_refused": Text("{cause} Operator: {cause:hint}"),
    "disk_defect": Text(
        "An error of gpu-dev itself. Nothing was deleted. Operator: look into the controller's log."
    ),
    "disk_problem": Text('Disk "{name}" of {username}: {problem}'),
    # how rows and storage differ
    "volume_untagged": Text(
        "Volume {volume} lacks gpu-dev-user or disk_name, so nobody knows whose it is: it is passed over. "
        "Operator: add the tags, or remove the one that it has."
    ),
    "volume_duplicate": Text(
        "Volume {volume} says that it is the same disk as {chosen}, which is taken for it. "
        "Operator: look at both; neither is ever deleted by this."
    ),
    "volume_missing": Text(
        'Volume {volume} of disk "{name}" of {username} is not in the listing. The row is kept. '
        "Operator: find out who removed the volume or its tags."
    ),
    "disk_would_be_imported": Text(_say_import),
    "disk_would_be_synced": Text(_say_sync),
    "nothing_reconciled": Text("Nothing was changed: {cause}"),
    "disk_not_reconciled": Text(lambda values: values.fill("{cause} {cause:hint}").strip()),
}


_STORAGE = {
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

TEXTS = {**_REQUESTS, **_DEFECTS, **_DISK_EVENTS, **_STORAGE}
