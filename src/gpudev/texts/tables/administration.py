"""What admins and operators are told: users, nodes, dead letters, webhooks, the audit log, simulations."""

from __future__ import annotations

from gpudev.texts.template import Text, Values

_USERS = "See them with: gpu-dev admin users"
_DEAD_LETTERS = "See them with: gpu-dev admin dead-letters"


def _no_node(values: Values) -> str:
    return "There is no node." if values["name"] is None else values.fill('There is no node "{name}".')


_ADMIN = {
    "server_error": Text(
        "The server made an error.", hint="Try again; if it stays, tell your operator the time."
    ),
    "not_an_admin": Text("{username} is not an admin.", hint="Ask your operator."),
    "no_such_user": Text("There is no such user.", hint=_USERS),
    "cannot_disable_self": Text("You cannot disable yourself.", hint="Another admin can do it."),
    "only_admins_see_others": Text("Only admins see the reservations of others.", hint="Leave the user out."),
    "node_not_found": Text(
        _no_node,
        hint=lambda values: values.fill("Nodes: {nodes}.") if values["nodes"] else "Nodes: none yet.",
    ),
    "bad_drain_reason": Text(
        "A reason is one line of at most {most} characters.",
        hint='For example: --reason "its fans are replaced"',
    ),
    "no_such_dead_letter": Text("There is no dead letter.", hint=_DEAD_LETTERS),
    "dead_letter_not_found": Text('There is no dead letter "{text}".', hint=_DEAD_LETTERS),
    "bad_anchor": Text(
        "The anchor is not NUMBER:HASH.",
        hint="Take both from an earlier verification, for example 17:9f86d0....",
    ),
    "bad_report_span": Text(
        "The span of a report is more than nothing and at most 400 days.",
        hint="For example: --from 2026-03-01 --to 2026-04-01",
    ),
}

_NOTIFICATIONS = {
    "bad_notification_address": Text(
        "This is not an address that notifications can be sent to.",
        hint="Use ASCII without spaces, with other characters as %XX, at most {longest} long.",
    ),
    "notification_address_without_tls": Text("The address must begin with https://."),
    "notification_host_not_allowed": Text(
        'Notifications may not be sent to "{host}".',
        hint=lambda values: f"Hosts that the operator allows: {', '.join(values['allowed']) or 'none'}.",
    ),
    "no_notification_address": Text(
        "You have no address for notifications.", hint="Set one with: gpu-dev notify set URL"
    ),
    "bad_notification_kind": Text(
        'There is no kind "{text}" of notification.', hint="Choose webhook or slack."
    ),
    "bad_notification_topic": Text('There is no topic "{text}".', hint="Choose from {topics}."),
}

_SIMULATION = {
    "trace_is_empty": Text("Nobody asked for anything in that time.", hint="Choose other weeks."),
    "no_request_fits": Text(
        "No request fits {nodes} nodes of {gpus_per_node} GPUs.",
        hint="Choose larger ones with --nodes and --gpus-per-node.",
    ),
    "bad_trace_line": Text(
        "{path}, line {line}: this is not a request: {cause}.",
        hint="Allowed: an object with at, user, gpus and hours; also {optional}.",
    ),
    "trace_field_unknown": Text('"{name}" is not known'),
    "trace_time_without_offset": Text("`at` has no offset from UTC"),
    "trace_of_nothing": Text("gpus, nodes and hours must be more than 0"),
}


def _say_repeated(values: Values) -> str:
    times = "once more" if values["count"] == 1 else "{count} times more"
    return values.fill(f"And {times} within a minute, this the last. {{detail}}").rstrip()


_AUDIT = {
    # details of entries, which are stored as words, with times in UTC
    "audit_extension": Text("Of {username}, by {length:duration}."),
    "audit_keep": Text("Of {username}, for {hours:g} hours. {reason}"),
    "audit_repeated": Text(_say_repeated),
    "audit_login_failed_often": Text("Failed too often."),
    # findings
    "audit_entry_added": Text(
        "Entry {entry} was added later: it says {at}, and seal {seal}, made at {sealed_at}, came without it."
    ),
    "audit_entry_missing": Text("Entry {entry} is missing."),
    "audit_entry_changed": Text("Entry {entry} was changed after it was sealed."),
    "audit_seal_missing": Text("Seal {seal} is missing."),
    "audit_seals_missing": Text("Seals {first} to {last} are missing."),
    "audit_seal_changed": Text(
        "Seal {seal}, over entries {first} to {last}, was changed: it was made over {entries} entries, "
        "and {found} are under it."
    ),
    "audit_chain_broken": Text("Seal {seal} does not follow seal {previous}."),
    "audit_chain_broken_at_start": Text("Seal {seal} does not follow the beginning of the log."),
    "audit_anchor_missing": Text("Seal {seal} is missing: the log was cut off, or made anew."),
    "audit_anchor_changed": Text("Seal {seal} has another hash than the one noted: the chain was made anew."),
}


_DEAD_LETTER_CAUSES = {
    "item_not_found": Text("There is no {kind} {key}."),
    "notification_without_topic": Text("It names neither an event nor a user."),
}


_WEBHOOK = {
    "notification_test": Text("This is a test of your notifications from gpu-dev."),
    "webhook_address_refused": Text("{cause}"),
    "webhook_silent": Text("{host} does not answer: {error}"),
    "webhook_not_askable": Text("{host} cannot be asked: {error}"),
    "webhook_answered": Text("{host} answered {status}."),
}


_SIMULATION_REPORT = {
    "simulation_requests": Text("requests"),
    "simulation_started": Text("started"),
    "simulation_rejected": Text("rejected by quota"),
    "simulation_gave_up": Text("gave up waiting"),
    "simulation_utilisation": Text("utilisation"),
    "simulation_median_wait": Text("median wait, hours"),
    "simulation_mean_wait": Text("mean wait, hours"),
    "simulation_long_wait": Text("9 of 10 waited less than, hours"),
    "simulation_fairness": Text("fairness"),
    "simulation_forecasts": Text("forecasts"),
    "simulation_error": Text("error of {name}, hours"),
    "simulation_bias": Text("bias of likely"),
    "simulation_coverage": Text("started in the likely window"),
    "simulation_promises_kept": Text("promises kept"),
    "simulation_chart": Text("Part of requests that waited at most so long"),
}

TEXTS = {
    **_ADMIN,
    **_NOTIFICATIONS,
    **_SIMULATION,
    **_AUDIT,
    **_DEAD_LETTER_CAUSES,
    **_WEBHOOK,
    **_SIMULATION_REPORT,
}
