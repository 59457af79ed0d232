"""What cannot be done to a reservation, and which one is meant."""

from __future__ import annotations

from gpudev.texts.template import Text, Values

_MINUTE = 60


def _ambiguity(values: Values) -> str:
    names = ", ".join(f"{values.show(of, 'short')} ({name})" for of, name in values["candidates"])
    return values.fill('"{text}" fits {count} reservations: ') + f"{names}."


def _leaving(values: Values) -> str:
    nodes = "Node {nodes} is" if len(values["nodes"]) == 1 else "Nodes {nodes} are"
    reasons = "; ".join(values["reasons"])
    why = f": {reasons}" if reasons else ""
    return values.fill(f"{nodes} being taken out of service") + f"{why}."


def _hint_promised(values: Values) -> str:
    if values["left"] < _MINUTE:
        return "Reserve again, and see before when that would start: gpu-dev reserve --dry-run"
    return values.fill(_EXTEND)


_EXTEND = "For example: gpu-dev edit {reservation:short} --extend {left:hours}"
"""A command that clients of version 0.3 know as well as ours."""

_FINDING = {
    "reservation_not_found": Text(
        'Reservation "{text}" was not found.', hint="Yours are listed by: gpu-dev list --all"
    ),
    "reservation_not_found_by_so_few": Text(
        'Reservation "{text}" was not found.',
        hint="An id takes {least} characters or more. Yours are listed by: gpu-dev list --all",
    ),
    "ambiguous_reservation": Text(_ambiguity, hint="Type more characters of the id."),
    "operation_not_found": Text('Operation "{text}" was not found.'),
    "bad_status": Text('There is no status "{text}".', hint="Choose from {choices}."),
    "reservation_id_in_use": Text(
        "The reservation id is in use, or its first 8 characters are.", hint="Ask again with another id."
    ),
    "idempotency_key_reused": Text(
        "This Idempotency-Key was used for another request.", hint="Use a fresh key for each request."
    ),
}

_EXTENSION = {
    "bad_extension": Text(
        "{hours:g} hours is not an extension.", hint="Say by how many hours, for example 2 or 0.5."
    ),
    "not_active_to_extend": Text(
        "Reservation {reservation:short} is {status}; only an active one can be extended.",
        hint="Yours are listed by: gpu-dev list",
    ),
    "extension_promised_to_others": Text(
        "Reservation {reservation:short} can be extended by {left:duration} at most: "
        "its GPUs are promised to somebody from {until:time} on.",
        hint=_hint_promised,
    ),
    "reservation_is_at_its_longest": Text(
        "Reservation {reservation:short} has its longest length of {longest:duration} already.",
        hint="Reserve again when it ends: gpu-dev reserve",
    ),
    "extension_too_long": Text(
        "Reservation {reservation:short} can be extended by {left:duration} at most: "
        "{longest:duration} in all, counted from its start, is the longest.",
        hint=_EXTEND,
    ),
    "extension_on_leaving_nodes": Text(
        lambda values: _leaving(values) + values.fill(" Reservation {reservation:short} cannot be extended."),
        hint="Reserve again, on another node: gpu-dev reserve",
    ),
}

_USE = {
    "reservation_cannot_become": Text("A reservation that is {before} cannot become {after}."),
    "not_active_to_connect": Text(
        "Reservation {reservation:short} is {status}: there is nothing to connect to.",
        hint="See where it stands with: gpu-dev show {reservation:short}",
    ),
    "reservation_has_no_such_node": Text(
        "Reservation {reservation:short} has no node {rank}.",
        hint="Its nodes are shown by: gpu-dev show {reservation:short}",
    ),
    "bad_keep": Text(
        "{hours:g} hours is not a time to keep a reservation.",
        hint="Say more than 0 and at most 48 hours, for example: gpu-dev keep ID 2h",
    ),
    "not_active_to_keep": Text(
        "Reservation {reservation:short} is {status}; only an active one can be kept.",
        hint="Yours are listed by: gpu-dev list",
    ),
    "log_not_found": Text(
        "Reservation {reservation:short} is {status}: no log of it was found.",
        hint="What happened to it is told by: gpu-dev show {reservation:short}",
    ),
    "jupyter_not_supported": Text(
        "Jupyter cannot be switched on or off yet; reservation {reservation:short} stays as it is.",
        hint="Start it on the dev server, and forward its port with: ssh -L",
    ),
    "sharing_not_supported": Text(
        "Other people cannot be given access yet; reservation {reservation:short} stays as it is.",
        hint="Reserve again, with their public keys in ssh_public_keys.",
    ),
    "no_such_tunnel_path": Text("The SSH proxy knows /v1/jobs/{{id}}/ssh?node=N alone."),
}

TEXTS = {**_FINDING, **_EXTENSION, **_USE}
