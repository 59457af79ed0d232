"""Why a request waits. Of others only the first characters of an id and the end are told."""

from __future__ import annotations

from gpudev.texts.template import Text, Values


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

TEXTS = {
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
