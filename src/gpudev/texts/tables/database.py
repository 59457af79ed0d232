"""The database: whether it can be used, rows that are not there or were changed, what constraints forbid."""

from __future__ import annotations

from collections.abc import Callable

from gpudev.texts.template import Text, Values

_MIGRATE = "Run: gpu-dev server migrate"
_STORY = "The whole story is in {log}"


def _or_silence(before: str) -> Callable[[Values], str]:
    """A sentence that ends with what a program wrote, if it did."""
    return lambda values: values.fill(before + ("{words}" if values["words"] else "it left no message"))


TEXTS = {
    "database_silent": Text("The database does not answer: {words}", hint="Try again in a moment."),
    "database_read_only": Text(
        "The database can only be read.", hint="Look whether its disk is full, or whether it is a replica."
    ),
    # the embedded PostgreSQL
    "postgres_not_installed": Text(
        "The embedded PostgreSQL is not installed.", hint="Install it with: pip install 'gpu-dev[server]'"
    ),
    "postgres_cannot_run_as": Text(
        "PostgreSQL cannot run as user {user}: neither `unshare --user` nor `setpriv --reuid` works here.",
        hint="Run gpu-dev as a normal user.",
    ),
    "postgres_failed": Text(_or_silence("PostgreSQL in {path} {what}: "), hint=_STORY),
    "postgres_ended": Text("ended with {status}"),
    "postgres_not_ready": Text("was not ready within {limit}"),
    "postgres_not_ended": Text("The previous PostgreSQL in {path} has not ended within {limit}."),
    "database_not_made": Text(
        _or_silence("The database could not be made ({program} ended with {status}): "), hint=_STORY
    ),
    "database_in_use": Text(
        "The database in {path} is already in use by process {pid}.",
        hint="Stop that one first with: gpu-dev down",
    ),
    "database_of_another_user": Text(
        "The database in {path} belongs to user {owner}, not to {user}.",
        hint="Run gpu-dev as the user who made it, or choose another state folder.",
    ),
    "folder_not_private": Text("{path} is not a private folder of ours.", hint="Remove it: rm -r {path}"),
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
    "query_values_wrong": Text("A query was not given the values that it needs: {names}."),
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
