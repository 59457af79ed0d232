"""The words of the contract: statuses, reasons, kinds of events and of operations.

The API and the client, the rules and the database use these words, so there is one list of each. A client
may meet a word of a newer server that it does not know: what is read from the wire is compared with these
members, never converted to one.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Status(StrEnum):
    """Where a reservation is."""

    PENDING = "pending"
    """Accepted, and not looked at by admission yet."""
    QUEUED = "queued"
    """Waits for room, with a position and a time."""
    PREPARING = "preparing"
    """Has its place; the dev server is being made."""
    ACTIVE = "active"
    """The dev server answers on SSH."""
    STOPPED = "stopped"
    """Its owner ended the server for now: GPUs and disk are free, name, settings and time left are kept."""
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    FAILED = "failed"


WAITING = (Status.PENDING, Status.QUEUED)
PLACED = (Status.PREPARING, Status.ACTIVE)
"""Holds GPUs of a node."""
ENGAGED = (*WAITING, *PLACED)
"""Holds GPUs or waits for some."""
LIVE = (*ENGAGED, Status.STOPPED)
"""Not over: it has a server, or can have one."""
TERMINAL = (Status.EXPIRED, Status.CANCELLED, Status.FAILED)


class Reason(StrEnum):
    """Why a reservation is where it is. `texts.tables.reasons` has a sentence and a hint for each."""

    WAITING_FOR_CAPACITY = "waiting_for_capacity"
    WAITING_IN_LINE = "waiting_in_line"
    NO_NODES = "no_nodes"
    WAITING_FOR_QUOTA = "waiting_for_quota"
    BOOKED = "booked"
    DISK_BUSY = "disk_busy"
    PLACEMENT_LOST = "placement_lost"
    STOPPED_BY_USER = "stopped_by_user"
    STOPPED_BY_ADMIN = "stopped_by_admin"
    STOPPED_TOO_LONG = "stopped_too_long"
    TIME_IS_UP = "time_is_up"
    WENT_IDLE = "went_idle"
    CANCELLED_BY_USER = "cancelled_by_user"
    CANCELLED_BY_ADMIN = "cancelled_by_admin"
    COMMAND_FINISHED = "command_finished"
    START_FAILED = "start_failed"
    START_TIMED_OUT = "start_timed_out"
    START_STALLED = "start_stalled"
    QUEUE_STALLED = "queue_stalled"
    QUEUED_TOO_LONG = "queued_too_long"
    SERVER_FAILED = "server_failed"
    IMAGE_UNAVAILABLE = "image_unavailable"
    POD_DELETED = "pod_deleted"
    NODE_LOST = "node_lost"
    EVICTED = "evicted"
    OUT_OF_MEMORY = "out_of_memory"
    DISK_FAILED = "disk_failed"
    INTERNAL_ERROR = "internal_error"


class EventKind(StrEnum):
    """What can happen to a reservation, as its owner reads it."""

    SUBMITTED = "submitted"
    QUEUED = "queued"
    PLACED = "placed"
    PROGRESS = "progress"
    """Something worth knowing on the way to a running server: its image is being fetched."""
    WARNING = "warning"
    """Something that the user of a running server should know; or that it is over."""
    REQUEUED = "requeued"
    REPLANNED = "replanned"
    """It starts later than it was promised, and is told why."""
    ACTIVE = "active"
    WARNED = "warned"
    EXTENDED = "extended"
    EXTENSION_REFUSED = "extension_refused"
    IDLE_WARNED = "idle_warned"
    IDLE_OVER = "idle_over"
    KEPT = "kept"
    OUT_OF_MEMORY = "out_of_memory"
    NODE_LEAVES = "node_leaves"
    """Its node is taken out of service; it runs on until its end."""
    NODE_STAYS = "node_stays"
    STOPPED = "stopped"
    """Its server ends; the reservation does not."""
    RELEASED = "released"
    """The server of a stopped reservation is gone and its GPUs are free; its disk follows with a snapshot."""
    RESUMED = "resumed"
    """Stopped before, it waits for a server again."""
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    FAILED = "failed"
    CLEANED = "cleaned"
    """The last one: nothing more happens to it, and the server ends the stream."""
    FINISHED = "finished"
    """The command of `gpu-dev submit` has ended; the reservation has not."""


QUEUE_MOVE = "position"
"""The kind of a message of the event stream that is not an event of the history: only where a waiting
reservation is in the queue now. It has no number of its own."""


class OperationKind(StrEnum):
    """What is requested for a reservation."""

    CANCEL = "cancel"
    EXTEND = "extend"
    KEEP = "keep"
    STOP = "stop"


class OperationStatus(StrEnum):
    """How far an operation on a reservation or a disk is."""

    REQUESTED = "requested"
    DONE = "done"
    FAILED = "failed"


class Outcome(StrEnum):
    """What became of the command of `gpu-dev submit`."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """It ended by itself, with an exit code other than 0."""
    STOPPED = "stopped"
    """By its owner, or with the reservation."""
    TIMED_OUT = "timed_out"
    """The reservation's time was over."""


class DiskState(StrEnum):
    """Where a disk is."""

    CREATING = "creating"
    """Its volume is being made."""
    AVAILABLE = "available"
    """Free. Its volume is there, or is made when it is first used."""
    ATTACHING = "attaching"
    """Taken by a reservation; the volume is being made ready where the server will be."""
    IN_USE = "in_use"
    """A server of its reservation may have it mounted."""
    RELEASING = "releasing"
    """Its reservation is over; the server and its hold on the volume are still to go."""
    SNAPSHOTTING = "snapshotting"
    """Nobody writes to it, and a snapshot is being made."""
    SOFT_DELETED = "soft_deleted"
    """Its owner gave it up; until the delete date it can be had back."""
    PURGING = "purging"
    """Being destroyed. There is no way back from here."""
    PURGED = "purged"


class DiskOperationKind(StrEnum):
    """What is requested for a disk."""

    CREATE = "create"
    CLONE = "clone"
    GROW = "grow"
    RENAME = "rename"
    DELETE = "delete"
    RESTORE = "restore"


class DiskEventKind(StrEnum):
    """What can happen to a disk, for its owner and for operators."""

    CREATED = "created"
    ATTACHED = "attached"
    RELEASED = "released"
    SNAPSHOT = "snapshot"
    MOVED = "moved"
    GROWN = "grown"
    RENAMED = "renamed"
    DELETED = "deleted"
    RESTORED = "restored"
    PURGED = "purged"
    IMPORTED = "imported"
    SYNCED = "synced"
    PROBLEM = "problem"


class NodeState(StrEnum):
    """Where a node stands, as an admin reads it."""

    IN_SERVICE = "in_service"
    CLOSED = "closed"
    """The cluster itself places nothing there: it is cordoned, tainted or not ready."""
    DRAINING = "draining"
    """Nothing new is placed there, and reservations are still there."""
    DRAINED = "drained"
    """Nothing new is placed there, and none is left."""
    GONE = "gone"
    """It was drained, and the cluster has it no more."""


class Topic(StrEnum):
    """What a notification is about."""

    STARTS = "starts"
    WARNINGS = "warnings"
    ENDS = "ends"
    FAILURES = "failures"
    QUEUE = "queue"


TOPIC_OF: Mapping[str, Topic] = MappingProxyType(
    {
        EventKind.ACTIVE: Topic.STARTS,
        EventKind.WARNED: Topic.WARNINGS,
        EventKind.IDLE_WARNED: Topic.WARNINGS,
        EventKind.OUT_OF_MEMORY: Topic.WARNINGS,
        EventKind.NODE_LEAVES: Topic.WARNINGS,
        EventKind.NODE_STAYS: Topic.WARNINGS,
        EventKind.STOPPED: Topic.ENDS,
        EventKind.RESUMED: Topic.QUEUE,
        EventKind.EXPIRED: Topic.ENDS,
        EventKind.CANCELLED: Topic.ENDS,
        EventKind.FAILED: Topic.FAILURES,
        EventKind.QUEUED: Topic.QUEUE,
        EventKind.PLACED: Topic.QUEUE,
        EventKind.REQUEUED: Topic.QUEUE,
    }
)
"""Events that are not here are told to nobody."""


class TargetKind(StrEnum):
    """How a notification is sent."""

    WEBHOOK = "webhook"
    """JSON with everything, signed."""
    SLACK = "slack"
    """`{"text": ...}`, as Slack and those compatible with it take it."""
