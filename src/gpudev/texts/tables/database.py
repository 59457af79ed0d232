"""The database: rows that are not there or were changed, and what its constraints do not allow."""

from __future__ import annotations

from gpudev.texts.template import Text

TEXTS = {
    # rows
    "reservation_row_not_found": Text("Reservation {id} was not found."),
    "disk_row_not_found": Text("Disk {id} was not found."),
    "operation_row_not_found": Text("Operation {id} was not found."),
    "reservation_changed": Text("Reservation {id:short} was changed by somebody else."),
    "reservation_or_disk_changed": Text("Reservation {id:short} or its disk was changed by somebody else."),
    "disk_changed": Text('Disk "{name}" was changed by somebody else.'),
    "port_slot_taken": Text("The port slot {slot} was given to somebody else."),
    # constraints
    "reservation_name_taken": Text(
        'You have a live reservation with the name "{name}" already.',
        hint="Choose another --name, or end that one: gpu-dev cancel {name}",
    ),
    "reservation_id_taken": Text("The reservation id {id} is taken.", hint="Ask again."),
    "home_in_use_by_another": Text(
        "Another live reservation of yours has that disk.",
        hint="Name another disk with --disk NAME, a new name makes a new one; or none: --disk none",
    ),
    "disk_name_taken": Text(
        'You have a disk with the name "{name}" already.',
        hint="Choose another name; yours are listed by: gpu-dev disk list",
    ),
}
