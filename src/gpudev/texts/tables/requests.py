"""What is wrong with a request, and what the user should know of how it was read."""

from __future__ import annotations

from gpudev.texts.template import Text, Values, format_count


def _gpus(values: Values) -> str:
    return format_count(values["gpu_count"], f"{values['gpu_type']} GPU")


def _hint_labels(values: Values) -> str:
    return values.fill("Choose from {choices:or}.") if values["choices"] else "Leave out --node-label."


def _hint_gpus(values: Values) -> str:
    return (
        values.fill("Ask for {limit} at most with --gpus.")
        if values["limit"]
        else "Choose another --gpu-type."
    )


def _hint_hours(values: Values, otherwise: str) -> str:
    has_hours = values["most_hours"] is not None
    return values.fill("Ask for {most_hours:.1f} hours at most with --hours.") if has_hours else otherwise


def _rule(values: Values) -> str:
    lines = ", line breaks and tabs" if values["has_lines"] else ""
    return values.fill("must be at most {longest} printable characters") + lines


_NAMES = {
    "bad_time_zone": Text(
        '"{text}" is not a time zone that is known here.', hint="Use an IANA name, for example Europe/Berlin."
    ),
    "bad_reservation_name": Text(
        '"{name}" is not a reservation name.',
        hint="Use 1 to 40 lower-case letters, digits and dashes, for example --name my-run.",
    ),
    "reserved_reservation_name": Text(
        'The name "{name}" is reserved.', hint="Choose another one, for example --name my-run."
    ),
    "reservation_name_like_an_id": Text(
        'The name "{name}" could be taken for a reservation id.',
        hint="Add a letter beyond f, for example --name my-run.",
    ),
    "bad_reservation_id": Text(
        '"{text}" is not a reservation id.', hint="Send a UUID, or none: then the server makes one."
    ),
    "bad_client_version": Text(
        "The client's version has other characters than a version has.",
        hint="Use up to 64 letters, digits, dots, dashes, underscores and plus signs, or leave it out.",
    ),
    "bad_image": Text(
        '"{name}" is not the name of an image.',
        hint="Write it as for docker pull, for example pytorch/pytorch:2.8.0-cuda12.9-cudnn9-devel.",
    ),
    "unknown_node_label": Text('Nodes cannot be chosen by the label "{name}" here.', hint=_hint_labels),
    "unknown_node_label_value": Text(
        'The label "{name}" is not "{value}" on any node that can be asked for.', hint=_hint_labels
    ),
    "bad_quantity": Text('"{text}" is not a quantity.', hint="Write it as 10m, 0.5, 64Mi or 2Gi."),
    "bad_text": Text(
        lambda values: f"{values['field']} {_rule(values)}.",
        hint="Control characters and marks that change the direction of text are refused.",
    ),
    "field_not_found": Text(lambda values: f"The {values['field']} was not found: {_rule(values)}."),
}

_ENVIRONMENT = {
    "bad_env_name": Text(
        '"{name}" is not a name for an environment variable.',
        hint="Use letters, digits and underscores, not starting with a digit.",
    ),
    "reserved_env_name": Text(
        "The environment variable {name} is set by gpu-dev and cannot be given.",
        hint="NVIDIA_*, GPU_DEV_* and CUDA_VISIBLE_DEVICES are reserved; leave it out.",
    ),
    "reserved_env_name_in_a_gang": Text(
        "The environment variable {name} is set by gpu-dev on the nodes of a gang and cannot be given.",
        hint="Leave it out; only {changeable} may be changed.",
    ),
    "env_value_is_not_text": Text(
        "The value of the environment variable {name} is not text.",
        hint="It may have no zero byte and no half of a surrogate pair; binary data can be base64.",
    ),
    "env_too_long": Text(
        "The environment variables are too long.",
        hint="All of them together may have {most} characters; put long ones into a file.",
    ),
}

_GPUS = {
    "unknown_gpu_type": Text('There is no GPU type "{name}" here.', hint="Try --gpu-type {choices:or}."),
    "type_has_no_gpus": Text(
        "{gpu_type} has no GPUs.",
        hint="Ask for it with --gpus 0, or for GPUs with another --gpu-type than {gpu_type}.",
    ),
    "more_gpus_than_a_node_has": Text(
        "{gpu_count} GPUs are more than a {gpu_type} node has ({gpus_per_node}).",
        hint="Ask for {choices:or} with --gpus.",
    ),
    "gpu_count_not_offered": Text(
        "{gpu_type} GPUs are lent by {choices:or}, not {gpu_count}.", hint="Ask for {choices:or} with --gpus."
    ),
    "gpu_count_is_not_a_number": Text(
        'GPU_COUNT is "{text}", which is not a number.',
        hint='Send it as a string of digits, for example "1".',
    ),
    "type_has_one_node": Text(
        "{gpu_type} reservations have one node.",
        hint="Leave out --distributed, or choose a type with more nodes from: gpu-dev avail",
    ),
    "more_gpus_than_the_nodes_have": Text(
        "{gpu_count} GPUs are more than {nodes} {gpu_type} nodes have ({most}).",
        hint="Ask for {choices:or} with --gpus and --distributed.",
    ),
    "gpus_are_not_whole_nodes": Text(
        "{gpu_count} {gpu_type} GPUs are not several whole nodes of {gpus_per_node}.",
        hint="Ask for {choices:or} with --gpus and --distributed, or for {choices_on_one_node:or} without.",
    ),
    "distributed_not_said": Text(
        "{gpu_count} {gpu_type} GPUs are {nodes} whole nodes, and that was not asked for.",
        hint="Add --distributed, or ask for at most {gpus_per_node} with --gpus.",
    ),
}

_TIMES = {
    "bad_duration": Text(
        "{hours:g} hours is not a length that is lent.",
        hint="Ask for 5 minutes to 24 hours, for example --hours 4 or --hours 0.5.",
    ),
    "start_without_zone": Text(
        "start_at is {start}, and nobody knows where on earth.",
        hint="Send it with its offset from UTC, for example 2030-01-01T14:00:00Z.",
    ),
    "booking_in_the_past": Text(
        "A booking for {start:time} is in the past.",
        hint="Choose a later time, or leave out --at to start as soon as there is room.",
    ),
    "booking_too_far": Text(
        "A booking for {start:time} is more than {days} days ahead.",
        hint="Choose a time within the next {days} days.",
    ),
    "booking_never_possible": Text(
        lambda values: f"There is no time at which {_gpus(values)} could start.",
        hint="Choose another type from: gpu-dev avail",
    ),
    "booking_has_no_room": Text(
        lambda values: (
            _gpus(values) + values.fill(" cannot start at {start:time} without making others late.")
        ),
        hint="The nearest time after that is: --at {nearest:instant}",
    ),
    "time_without_zone": Text("A time needs a zone.", hint="Write it like 2026-03-01T12:00:00Z."),
    "time_beyond_the_calendar": Text(
        "The time is beyond the calendar.", hint="Write it like 2026-03-01T12:00:00Z."
    ),
}

_QUOTA = {
    "gpus_over_quota": Text(
        "{gpus} {gpu_type} GPUs are more than your quota of {limit} at once.", hint=_hint_gpus
    ),
    "waiting_over_quota": Text(
        "{waiting} of your requests wait for {gpu_type} GPUs; your quota is {limit}.",
        hint="Cancel one that you do not need any more, or wait until one starts: gpu-dev list",
    ),
    "reserved_gpu_hours_over_quota": Text(
        "{gpu_hours:.1f} GPU-hours of {gpu_type} are more than you have left: {used:.1f} of your {limit:g} "
        "are reserved now.",
        hint=lambda values: _hint_hours(
            values, "Cancel one that you do not need any more, or wait until one ends: gpu-dev list"
        ),
    ),
    "gpu_hours_over_quota": Text(
        "{gpu_hours:.1f} GPU-hours of {gpu_type} are more than you have left: {used:.1f} of your {limit:g} "
        "in {days:g} days are used or reserved.",
        hint=lambda values: _hint_hours(values, "Wait until older ones are over the period."),
    ),
    "submits_too_often": Text("You submit too often.", hint="Wait for Retry-After seconds."),
    "too_many_connections": Text(
        "You have {most} connections open, and may not have more.", hint="Close one of them first."
    ),
}

_NOT_SUPPORTED = {
    "fields_not_supported": Text(
        "Not supported yet: {names}.",
        hint=lambda values: "Leave it out." if len(values["names"]) == 1 else "Leave them out.",
    ),
    "image_not_supported": Text(
        "An image of one's own (image) is not supported yet.",
        hint="Leave out --dockerimage and --dockerfile.",
    ),
    "command_not_supported": Text(
        "A command to run after the start (command) is not supported yet.",
        hint="Leave it out, and run it over SSH once the reservation is active.",
    ),
}


_WARNINGS = {
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

TEXTS = {**_NAMES, **_ENVIRONMENT, **_GPUS, **_TIMES, **_QUOTA, **_NOT_SUPPORTED, **_WARNINGS}
