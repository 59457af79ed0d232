"""Why a reservation is where it is: a closed list, each with a sentence and a hint for its user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Reason(StrEnum):
    """Why a reservation is where it is. Each has a sentence and a hint in `EXPLANATIONS`."""

    WAITING_FOR_CAPACITY = "waiting_for_capacity"
    WAITING_IN_LINE = "waiting_in_line"
    NO_NODES = "no_nodes"
    WAITING_FOR_QUOTA = "waiting_for_quota"
    BOOKED = "booked"
    DISK_BUSY = "disk_busy"
    PLACEMENT_LOST = "placement_lost"
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


@dataclass(frozen=True, slots=True)
class Explanation:
    sentence: str
    hint: str


EXPLANATIONS: Mapping[Reason, Explanation] = MappingProxyType(
    {
        Reason.WAITING_FOR_CAPACITY: Explanation(
            "Not enough GPUs of this type are free on any one node.",
            "It starts by itself. Free types are listed by: gpu-dev avail",
        ),
        Reason.WAITING_IN_LINE: Explanation(
            "Earlier requests for this type go first.",
            "It starts by itself. Free types are listed by: gpu-dev avail",
        ),
        Reason.NO_NODES: Explanation(
            "No node of this type that could hold it is in service.",
            "Choose another type from: gpu-dev avail",
        ),
        Reason.WAITING_FOR_QUOTA: Explanation(
            "As many GPUs as your quota allows are in use.",
            "It starts when one of yours ends. End one sooner with: gpu-dev cancel ID",
        ),
        Reason.BOOKED: Explanation(
            "It is booked for a later time.",
            "It starts by itself then.",
        ),
        Reason.DISK_BUSY: Explanation(
            "Its disk is still being given back by an earlier reservation.",
            "It starts by itself. Another disk, or none, would start sooner: --disk NAME or --disk none",
        ),
        Reason.PLACEMENT_LOST: Explanation(
            "The chosen node could not take the server, so the request is back at its place in the queue.",
            "Nothing to do: it starts by itself.",
        ),
        Reason.TIME_IS_UP: Explanation("The reserved time is over.", "Reserve again with: gpu-dev reserve"),
        Reason.WENT_IDLE: Explanation(
            "Nobody used it, and the warning of that was not answered.",
            "Reserve again with: gpu-dev reserve. To keep a server that only waits: gpu-dev keep ID 2h",
        ),
        Reason.CANCELLED_BY_USER: Explanation(
            "It was cancelled by its owner.", "Reserve again with: gpu-dev reserve"
        ),
        Reason.CANCELLED_BY_ADMIN: Explanation(
            "It was cancelled by an admin.", "Ask your operator why before you reserve again."
        ),
        Reason.COMMAND_FINISHED: Explanation(
            "Its command finished, and its results were fetched.",
            "The end of its output is shown by: gpu-dev logs ID",
        ),
        Reason.START_FAILED: Explanation(
            "The dev server could not be started.",
            "The cluster's own words are in: gpu-dev show ID. Then reserve again.",
        ),
        Reason.START_TIMED_OUT: Explanation(
            "The dev server did not start in time and was given up.",
            "Reserve again with: gpu-dev reserve",
        ),
        Reason.START_STALLED: Explanation(
            "The start of the dev server made no progress for too long and was given up.",
            "Reserve again with: gpu-dev reserve",
        ),
        Reason.QUEUE_STALLED: Explanation(
            "The queue did not move this request although it was tried for minutes.",
            "Reserve again, and tell your operator the reservation id.",
        ),
        Reason.QUEUED_TOO_LONG: Explanation(
            "It waited for the longest time that a request may wait.",
            "Reserve again, perhaps fewer GPUs or another type from: gpu-dev avail",
        ),
        Reason.SERVER_FAILED: Explanation(
            "The dev server stopped running and could not be brought back.",
            "The cluster's own words are in: gpu-dev show ID. Then reserve again.",
        ),
        Reason.IMAGE_UNAVAILABLE: Explanation(
            "The image of the dev server could not be had.",
            "Check its name and who may read it, then reserve again.",
        ),
        Reason.NODE_LOST: Explanation(
            "The machine that the dev server ran on is gone.",
            "Reserve again with: gpu-dev reserve",
        ),
        Reason.EVICTED: Explanation(
            "The machine ran short of disk or memory and put the dev server out.",
            "Reserve again, and keep big files off the root file system.",
        ),
        Reason.OUT_OF_MEMORY: Explanation(
            "The dev server needed more memory than its share and could not be brought back.",
            "Reserve again with more GPUs: memory comes with them.",
        ),
        Reason.POD_DELETED: Explanation(
            "The dev server was removed from outside while the reservation was active.",
            "Reserve again with: gpu-dev reserve",
        ),
        Reason.DISK_FAILED: Explanation(
            "Its disk could not be made ready, and no empty home was put in its place.",
            "Tell your operator. Without the disk: gpu-dev reserve --disk none",
        ),
        Reason.INTERNAL_ERROR: Explanation(
            "An error of gpu-dev itself ended this reservation.",
            "Reserve again, and tell your operator the reservation id.",
        ),
    }
)
