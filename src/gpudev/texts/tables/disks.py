"""What cannot be done with a disk."""

from __future__ import annotations

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

TEXTS = {**_REQUESTS, **_DEFECTS}
