"""What the user should know of how a request was read."""

from __future__ import annotations

from gpudev.texts.template import Text

TEXTS = {
    "default_disk_in_use": Text(
        'Your disk "{name}" is in use by another reservation, so this home is not kept. '
        "Name another disk with --disk NAME to keep it."
    ),
    "no_storage_for_homes": Text(
        "There is no storage for disks here, so this home is not kept: it goes with the dev server."
    ),
    "disk_size_ignored": Text(
        'Disk "{name}" has {size} GB already; the size asked for was not looked at. '
        "Make it bigger with: gpu-dev disk grow {name} SIZE"
    ),
    # of clients of version 0.3
    "jupyter_not_started": Text("Jupyter is not started: this server does not have it yet."),
    "environment_not_recreated": Text("The environment is not recreated: this server cannot do that yet."),
    "entry_point_not_preserved": Text("There is no entry point to preserve: the image is the standard one."),
    "node_reserved_on_its_own": Text(
        "Node {number} of {count} is reserved on its own: the nodes may start at different times, and do not "
        "know each other. A newer client reserves all of them together, with: gpu-dev reserve --distributed."
    ),
    # keys
    "github_keys_unavailable": Text("Only the keys that were sent are let in: {cause}"),
    "github_without_keys": Text("GitHub has no SSH keys of {user}; only those that were sent are let in."),
}
