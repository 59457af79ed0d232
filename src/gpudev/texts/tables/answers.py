"""What the API answers to a request that was carried out or accepted, and words that are data themselves."""

from __future__ import annotations

from gpudev.texts.template import Text, Values


def _say_drain(values: Values) -> str:
    is_one = values["count"] == 1
    runs = "1 reservation is" if is_one else "{count} reservations are"
    until = ", until {until:time} at the latest" if values["until"] else ""
    told = "its owner is told" if is_one else "their owners are told"
    return values.fill(
        f"Node {{node}} is being drained: nothing new is placed there. {runs} still there{until}; {told}."
    )


_ANSWERS = {
    # disks
    "disk_making": Text('Disk "{name}" is being made.'),
    "disk_deleted": Text('Disk "{name}" is deleted. Until {until:date} it can be restored.'),
    "disk_back": Text('Disk "{name}" is back.'),
    "disk_renamed": Text('Disk "{name}" is now "{new_name}".'),
    "disk_tags_pending": Text("The tags of volume and snapshots are still being written."),
    "disk_growing": Text('Disk "{name}" is growing to {size} GB.'),
    "disk_copying": Text('Disk "{name}" is being copied.'),
    "disk_copying_snapshot": Text('Disk "{name}" is being copied as it was at {at:time}.'),
    "disk_copying_nothing": Text('Disk "{name}" is empty, and so is its copy.'),
    "disk_listing": Text("As of {at:time}, snapshot {snapshot}."),
    "disk_without_snapshot": Text('Disk "{name}" has no snapshot yet; one is made when it is given back.'),
    "snapshot_without_listing": Text("There is no file listing of snapshot {snapshot}."),
    # nodes
    "node_drained": Text("Node {node} is drained: nothing runs there, and nothing is placed there."),
    "node_draining": Text(_say_drain),
    "node_not_drained": Text("Node {node} was not drained."),
    "node_undrained_and_gone": Text("Node {node} is not drained any more, and not part of the cluster."),
    "node_undrained": Text("Node {node} is in service again."),
    "node_undrained_and_closed": Text(
        "Node {node} is not drained any more; the cluster itself still places nothing there."
    ),
    # operations
    "reservation_over": Text("The reservation has ended."),
    "cancel_requested": Text("Reservation {reservation:short} is being cancelled."),
    "extension_known": Text("Reservation {reservation:short} was asked to be extended before."),
    "extension_requested": Text(
        "Reservation {reservation:short} is being extended until {end:second}. "
        "After that it can be extended by {left:duration} more."
    ),
    "stop_requested": Text("Reservation {reservation:short} is being stopped."),
    "keep_requested": Text("Reservation {reservation:short} is kept for {hours:g} hours, used or not."),
    # admins, keys and notifications
    "user_disabled_now": Text("{username} is disabled, and all keys of {username} are revoked."),
    "user_enabled": Text("{username} is enabled and can log in."),
    "letter_sent_again": Text("{letter} is sent again."),
    "letter_deleted": Text("{letter} is deleted."),
    "key_revoked_now": Text("The API key {prefix} is revoked."),
    "notification_test_sent": Text("A test notification is on its way."),
    # tunnels of the SSH proxy
    "tunnel_over": Text("The reservation is over, its key was revoked, or you may not connect any more."),
    "tunnel_proxy_stopped": Text("The SSH proxy is stopped. Connect again."),
    "tunnel_idle": Text("Nothing has passed for {minutes:g} minutes."),
    "tunnel_without_server": Text("The dev server does not answer on its SSH port."),
    "tunnel_passed": Text(
        "After {seconds:.0f} s, {to_server} bytes to the server and {to_client} to the client: {why}."
    ),
    # the service itself
    "simulated_types": Text("Simulated GPUs can be reserved and counted, not computed on: {types}."),
    "controller_runs": Text("running"),
    "controller_never_seen": Text("never seen"),
    "controller_silent": Text("not heard of for {seconds:.0f} seconds"),
}


_PLAIN = {
    "words": Text("{words}"),
    "sentences": Text(lambda values: " ".join(map(values.show, values["parts"]))),
}

TEXTS = {**_ANSWERS, **_PLAIN}
