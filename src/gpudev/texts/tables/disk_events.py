"""What happens to disks, what keeps one from going on, and how rows and storage differ."""

from __future__ import annotations

from datetime import datetime

from gpudev.texts.template import Text, Values


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

TEXTS = {
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
