"""Why a reservation is where it is: a sentence and a hint for each reason, and what a request waits for.

Of others only the first characters of an id and the end are told.
"""

from __future__ import annotations

from gpudev.texts.template import Text, Values

REASONS = {
    "reason_waiting_for_capacity": Text(
        "Not enough GPUs of this type are free on any one node.",
        "It starts by itself. Free types are listed by: gpu-dev avail",
    ),
    "reason_waiting_in_line": Text(
        "Earlier requests for this type go first.",
        "It starts by itself. Free types are listed by: gpu-dev avail",
    ),
    "reason_no_nodes": Text(
        "No node of this type that could hold it is in service.",
        "Choose another type from: gpu-dev avail",
    ),
    "reason_waiting_for_quota": Text(
        "As many GPUs as your quota allows are in use.",
        "It starts when one of yours ends. End one sooner with: gpu-dev cancel ID",
    ),
    "reason_booked": Text(
        "It is booked for a later time.",
        "It starts by itself then.",
    ),
    "reason_disk_busy": Text(
        "Another reservation has its disk, or has not given it back yet.",
        "It starts by itself. Another disk, or none, would start sooner: --disk NAME or --disk none",
    ),
    "reason_placement_lost": Text(
        "The chosen node could not take the server, so the request is back at its place in the queue.",
        "Nothing to do: it starts by itself.",
    ),
    "reason_stopped_by_user": Text(
        "It was stopped by its owner. Its GPUs and its disk are for others meanwhile.",
        "Start it again with: gpu-dev start ID",
    ),
    "reason_stopped_by_admin": Text(
        "It was stopped by an admin. Its GPUs and its disk are for others meanwhile.",
        "Start it again with: gpu-dev start ID",
    ),
    "reason_stopped_too_long": Text(
        "It was stopped for longer than a reservation may be.",
        "Its disk is kept. Reserve again with: gpu-dev reserve --disk NAME",
    ),
    "reason_time_is_up": Text(
        "The reserved time is over.",
        "Reserve again with: gpu-dev reserve",
    ),
    "reason_went_idle": Text(
        "Nobody used it, and the warning of that was not answered.",
        "Reserve again with: gpu-dev reserve. To keep a server that only waits: gpu-dev keep ID 2h",
    ),
    "reason_cancelled_by_user": Text(
        "It was cancelled by its owner.",
        "Reserve again with: gpu-dev reserve",
    ),
    "reason_cancelled_by_admin": Text(
        "It was cancelled by an admin.",
        "Ask your operator why before you reserve again.",
    ),
    "reason_command_finished": Text(
        "Its command finished, and its results were fetched.",
        "The end of its output is shown by: gpu-dev logs ID",
    ),
    "reason_start_failed": Text(
        "The dev server could not be started.",
        "The cluster's own words are in: gpu-dev show ID. Then reserve again.",
    ),
    "reason_start_timed_out": Text(
        "The dev server did not start in time and was given up.",
        "Reserve again with: gpu-dev reserve",
    ),
    "reason_start_stalled": Text(
        "The start of the dev server made no progress for too long and was given up.",
        "Reserve again with: gpu-dev reserve",
    ),
    "reason_queue_stalled": Text(
        "The queue did not move this request although it was tried for minutes.",
        "Reserve again, and tell your operator the reservation id.",
    ),
    "reason_queued_too_long": Text(
        "It waited for the longest time that a request may wait.",
        "Reserve again, perhaps fewer GPUs or another type from: gpu-dev avail",
    ),
    "reason_server_failed": Text(
        "The dev server stopped running and could not be brought back.",
        "The cluster's own words are in: gpu-dev show ID. Then reserve again.",
    ),
    "reason_image_unavailable": Text(
        "The image of the dev server could not be had.",
        "Check its name and who may read it, then reserve again.",
    ),
    "reason_pod_deleted": Text(
        "The dev server was removed from outside while the reservation was active.",
        "Reserve again with: gpu-dev reserve",
    ),
    "reason_node_lost": Text(
        "The machine that the dev server ran on is gone.",
        "Reserve again with: gpu-dev reserve",
    ),
    "reason_evicted": Text(
        "The machine ran short of disk or memory and put the dev server out.",
        "Reserve again, and keep big files off the root file system.",
    ),
    "reason_out_of_memory": Text(
        "The dev server needed more memory than its share and could not be brought back.",
        "Reserve again with more GPUs: memory comes with them.",
    ),
    "reason_disk_failed": Text(
        "Its disk could not be made ready, and no empty home was put in its place.",
        "Tell your operator. Without the disk: gpu-dev reserve --disk none",
    ),
    "reason_internal_error": Text(
        "An error of gpu-dev itself ended this reservation.",
        "Reserve again, and tell your operator the reservation id.",
    ),
}


def _say_room(values: Values) -> str:
    if values["gpu_count"] == 0:
        return values.fill("A {gpu_type} slot on one node")
    where = "{node_count} whole nodes" if values["node_count"] > 1 else "one node"
    labels = ", ".join(f"{name}={value}" for name, value in sorted(values["labels"].items()))
    gpus = values.fill(f"{{gpu_count}} {{gpu_type}} GPU{{gpu_count:plural}} on {where}")
    return f"{gpus} with {labels}" if labels else gpus


_QUOTA = "The quota of {username} is {limit} {gpu_type} GPUs at once"
_LONG_LIMIT = (
    "{username} may hold {limit} {gpu_type} GPUs for longer than {hours:g} hours: "
    "there is room in that at {start:time}"
)

_WAITING = {
    "wanted_room": Text(_say_room),
    "waiting_for_whole_nodes": Text("Not enough nodes of this type are free as a whole."),
    "no_whole_nodes": Text("Not enough whole nodes of this type are in service."),
    "waiting_for_clearing": Text("Its time has come; {node} is being cleared for it."),
    "booked_for": Text("Booked for {start:time} on {nodes}."),
    "quota_too_small": Text(_QUOTA + ", fewer than it asks for."),
    "quota_has_room": Text(_QUOTA + ": there is room in it at {start:time}."),
    "quota_has_room_after": Text(_QUOTA + ": there is room in it at {start:time}, when {blocker} ends."),
    "long_limit_has_room": Text(_LONG_LIMIT + "."),
    "long_limit_has_room_after": Text(_LONG_LIMIT + ", when {blocker} has {hours:g} hours left."),
    "waiting_for_maintenance": Text("{room}: {node} is back from its maintenance at {start:time}."),
    "waiting_for_end": Text("{room}: {node} has room at {start:time}, when {blocker} ends."),
    "waiting_for_earlier": Text(
        "{room}: {node} has room at {start:time}, when {blocker}, which starts before, ends."
    ),
    "starts_at": Text("It starts at {start:time}."),
}

TEXTS = {**REASONS, **_WAITING}
