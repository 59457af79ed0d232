"""Reservations: what cannot be done to one, what happens to it, and what people on its server are told."""

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


def _say_resumed(values: Values) -> str:
    where = " on {node_count} nodes" if values["node_count"] > 1 else ""
    if values["gpu_count"] == 0:
        return values.fill("Waits for a {gpu_type} node to start again.")
    return values.fill(f"Waits for {{gpu_count}} {{gpu_type}} GPU{{gpu_count:plural}}{where} to start again.")


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

_STOP = {
    "not_active_to_stop": Text(
        "Reservation {reservation:short} is {status}; only an active one can be stopped.",
        hint="See where it stands with: gpu-dev show {reservation:short}",
    ),
    "no_time_left_to_stop": Text(
        "The time of reservation {reservation:short} is up: there is nothing left to keep.",
        hint="Give it more time first: gpu-dev extend {reservation:short} 2",
    ),
    "command_runs": Text(
        "Reservation {reservation:short} runs a command of gpu-dev submit, which a stop would end.",
        hint="Wait for it with: gpu-dev wait {reservation:short} --for ended, or end it with gpu-dev cancel",
    ),
    "not_stopped": Text(
        "Reservation {reservation:short} is {status}; only a stopped one can be started.",
        hint="See where it stands with: gpu-dev show {reservation:short}",
    ),
    "home_disk_deleted": Text(
        'Disk "{name}", the home of reservation {reservation:short}, was deleted.',
        hint="Restore it first: gpu-dev disk restore {name}",
    ),
    "still_stopping": Text(
        "The server of reservation {reservation:short} has not ended yet.",
        hint="Try again in a few seconds.",
    ),
    "reservation_stopped": Text("Its server was ended. Time left: {left:duration}."),
    "reservation_released": Text("The server is gone and its GPUs are free."),
    "reservation_resumed": Text(_say_resumed),
    "stopped_ends_soon": Text(
        "Reservation {name} ({reservation:short}) has been stopped for days and ends at {end:time}. "
        "Start it with: gpu-dev start {reservation:short}"
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


def _say_request(values: Values) -> str:
    where = " on {node_count} nodes" if values["node_count"] > 1 else ""
    when = " for {start_at:time}" if values["start_at"] else ""
    return values.fill(f"Asked for {{gpu_count}} {{gpu_type}} GPU{{gpu_count:plural}}{where}{when}.")


def _say_missing_members(values: Values) -> str:
    return f"Gone: {', '.join(f'{name} on {node}' for name, node in values['members'])}."


def _say_kept(values: Values) -> str:
    why = " {reason}" if values["reason"] else ""
    return values.fill(f"Kept until {{until:second}}, whether it is used or not.{why}")


def _say_stop(values: Values) -> str:
    return values.fill(f"The command was stopped{_code(values)}.")


def _say_timeout(values: Values) -> str:
    return values.fill(f"The command was stopped because the time was over{_code(values)}.")


def _code(values: Values) -> str:
    return "" if values["code"] is None else " (exit code {code})"


_SIGNALS = {
    "gpu_use": "GPU use {:.0f}%",
    "gpu_memory": "GPU memory {:.0f}%",
    "ssh": "{:.0f} SSH connections",
    "jupyter": "{:.0f} Jupyter connections",
    "cpu": "{:.2f} CPU cores busy",
}


def _say_signals(values: Values) -> str:
    return ", ".join(
        _SIGNALS[signal].format(value) + (" (simulated)" if is_simulated else "")
        for signal, value, is_simulated in values["signals"]
    )


_NOT_ENDED = "It is not ended for being idle"

_EVENTS = {
    # on the way to a running server
    "reservation_requested": Text(_say_request),
    "reservation_queued": Text("Waiting at position {position}. {why}"),
    "reservation_placed": Text("Placed on {nodes}."),
    "reservation_starting": Text("Starting on {nodes}."),
    "server_answers": Text("The dev server answers on SSH."),
    "reservation_replanned": Text("Promised for {promised:time}, now {start:time}: {why}."),
    "reservation_without_start": Text("Promised for {promised:time}, and now it is not known when: {why}."),
    "node_out_of_service": Text("{node} is out of service"),
    "node_in_maintenance": Text("{node} is out for maintenance from {since:time}"),
    "quota_of_gpus": Text("the quota is {limit} GPUs at once"),
    "node_held_longer": Text("{reservation} is on {node} for longer than was planned"),
    "node_has_less_room": Text("{node} has less room than was planned"),
    # while it runs
    "server_warning": Text("Warning: {what}"),
    "server_warning_over": Text("It is over: {what}"),
    "reservation_extended": Text("Extended by {length:duration}: it ends at {end:second}."),
    "reservation_kept": Text(_say_kept),
    "usage_signals": Text(_say_signals),
    "usage_signal_unknown": Text("{signal} is not known"),
    "idle_over_kept": Text(_NOT_ENDED + ": it is kept until {until:second}."),
    "idle_over_used": Text(_NOT_ENDED + ", for it is used again: {signals}."),
    "idle_over_was_used": Text(_NOT_ENDED + ", for it was used until {until:second}."),
    "idle_over_unknown": Text(
        _NOT_ENDED + ": no limit holds any more, or how it is used is not known at the moment."
    ),
    # its end
    "idle_signals": Text("{signals}."),
    "members_gone": Text(_say_missing_members),
    "command_finished": Text("The command finished with exit code {code}."),
    "command_stopped": Text(_say_stop),
    "command_timed_out": Text(_say_timeout),
    "command_output_on_disk": Text(
        'What it wrote is on the disk "{disk}" in submit/{reservation:short}/files.'
    ),
    "reservation_cleaned": Text("Nothing of it is left on the cluster."),
}


def _say_leaving(values: Values) -> str:
    nodes = "Node {nodes} is" if len(values["nodes"]) == 1 else "Nodes {nodes} are"
    reasons = "; ".join(values["reasons"])
    why = f": {reasons}" if reasons else ""
    return (
        values.fill(f"{nodes} being taken out of service")
        + f"{why}. "
        + values.fill(
            "Reservation {name} ({reservation:short}) runs on until {end:second} and cannot be extended. "
            "Save your work before: only what is on a disk is kept."
        )
    )


def _say_staying(values: Values) -> str:
    nodes = "Node {nodes} stays" if len(values["nodes"]) == 1 else "Nodes {nodes} stay"
    return values.fill(
        f"{nodes} in service after all. Reservation {{name}} ({{reservation:short}}) can be extended again."
    )


def _say_memory(values: Values) -> str:
    times = "once" if values["count"] == 1 else "{count} times"
    return values.fill(
        f"Something on this server was ended for want of memory, {times} so far, last at {{at:second}}."
    )


_ENDS = "Reservation {name} ({reservation:short}) ends in {minutes} minutes, at {end:second}. "

_NOTICES = {
    # The command is one that clients of version 0.3 know as well as ours.
    "ends_soon": Text(_ENDS + "For more time: gpu-dev edit {reservation:short} --extend HOURS"),
    "ends_soon_with_its_node": Text(
        _ENDS + "Its node is being taken out of service, so it cannot be extended."
    ),
    "idle_warning": Text(
        "Nobody uses reservation {name} ({reservation:short}): {signals}. It ends at {end:second} unless it "
        "is used again. To keep it: gpu-dev keep {reservation:short} 2h --reason WHY"
    ),
    "node_leaves": Text(_say_leaving),
    "node_stays": Text(_say_staying),
    "out_of_memory": Text(_say_memory),
}

TEXTS = {**_FINDING, **_EXTENSION, **_STOP, **_USE, **_EVENTS, **_NOTICES}
