"""The database: whether it can be used, rows that are not there or were changed, what constraints forbid."""

from __future__ import annotations

from gpudev.texts.template import Text

_MIGRATE = "Run: gpu-dev server migrate"

TEXTS = {
    "database_silent": Text("The database does not answer: {words}", hint="Try again in a moment."),
    "database_read_only": Text(
        "The database can only be read.", hint="Look whether its disk is full, or whether it is a replica."
    ),
    # schema and migrations
    "schema_missing": Text("The database has no schema yet.", hint=_MIGRATE),
    "schema_not_granted": Text("The role of the service may not use the schema yet.", hint=_MIGRATE),
    "schema_too_old": Text("The database schema is older than this version.", hint=_MIGRATE),
    "message_queue_missing": Text("The message queue is missing.", hint=_MIGRATE),
    "migration_unknown": Text(
        "The database has migration {number:04}, which this version does not know.",
        hint="It was migrated by a newer gpu-dev; upgrade this one.",
    ),
    "migration_changed": Text(
        "Migration {number:04} was changed after it was applied.",
        hint="The database belongs to another version of gpu-dev; give this one its own.",
    ),
    "pgmq_not_pinned": Text(
        "The SQL of the installed pgmq package is not the one that this version installs: its SHA-256 is "
        "{found}, not {wanted}.",
        hint="Install the pinned version: pip install --constraint constraints.txt 'gpu-dev[server]'",
    ),
    "app_role_missing": Text(
        "The role {role}, as which the service is to connect, does not exist, and the owner of the "
        "tables may not make it.",
        hint="Let an administrator of the database run: CREATE ROLE {role} LOGIN PASSWORD '...'",
    ),
    # users and API keys
    "user_not_found": Text('There is no user "{username}".', hint="See them with: gpu-dev admin users"),
    "username_of_aws_identity": Text(
        "The username {username} belongs to an identity of AWS.", hint="Log in with AWS."
    ),
    "api_key_not_found": Text('You have no API key "{prefix}".', hint="Yours are listed by GET /v1/keys."),
    "api_key_ambiguous": Text(
        '{count} of your API keys begin with "{prefix}".',
        hint="They end by themselves; an operator can end all of yours at once.",
    ),
    "api_key_has_successor": Text(
        "This API key has been replaced already, and a key has one successor.",
        hint="Use the successor. If its answer was lost, log in again: gpu-dev login",
    ),
    "api_key_revoked_or_expired": Text("The API key was revoked or has expired.", hint="Log in again."),
    # rows
    "reservation_row_not_found": Text("Reservation {id} was not found."),
    "disk_row_not_found": Text("Disk {id} was not found."),
    "operation_row_not_found": Text("Operation {id} was not found."),
    "reservation_changed": Text("Reservation {id:short} was changed by somebody else."),
    "reservation_or_disk_changed": Text("Reservation {id:short} or its disk was changed by somebody else."),
    "disk_changed": Text('Disk "{name}" was changed by somebody else.'),
    "port_slot_taken": Text("The port slot {slot} was given to somebody else."),
    "message_without_id": Text("It has no {field} that is a UUID."),
    "volume_of_unknown_user": Text(
        "Volume {volume} belongs to {username}, who has never logged in here.",
        hint="It is taken in by the first reconciliation after that.",
    ),
    # constraints
    "ledger_constraint": Text("The database does not allow it: {words}"),
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
