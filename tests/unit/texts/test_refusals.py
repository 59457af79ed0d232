"""Refusals whose words depend on what is known: each of their forms, as people have read them before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gpudev.texts.fact import Fact, fact
from gpudev.texts.sentences import advise, say

NOON = datetime(2030, 1, 7, 12, 0, tzinfo=UTC)
HARD = "a {b}"
"""What somebody typed is not a template."""
ID = "7f3a91c2-0000-4000-8000-000000000000"
OTHER = "7f3aa000-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    "told, sentence, hint",
    [
        (
            fact("booking_has_no_room", gpu_count=1, gpu_type="t4", start=NOON, nearest=NOON),
            "1 t4 GPU cannot start at 2030-01-07 12:00 UTC without making others late.",
            "The nearest time after that is: --at 2030-01-07T12:00Z",
        ),
        (
            fact("booking_never_possible", gpu_count=4, gpu_type="t4"),
            "There is no time at which 4 t4 GPUs could start.",
            "Choose another type from: gpu-dev avail",
        ),
        (
            fact("unknown_node_label", name=HARD, choices=["nsight=true", "zone=a"]),
            'Nodes cannot be chosen by the label "a {b}" here.',
            "Choose from nsight=true or zone=a.",
        ),
        (
            fact("unknown_node_label", name="x", choices=[]),
            'Nodes cannot be chosen by the label "x" here.',
            "Leave out --node-label.",
        ),
        (
            fact("gpus_over_quota", gpus=8, gpu_type="h100", limit=4),
            "8 h100 GPUs are more than your quota of 4 at once.",
            "Ask for 4 at most with --gpus.",
        ),
        (
            fact("gpus_over_quota", gpus=8, gpu_type="h100", limit=0),
            "8 h100 GPUs are more than your quota of 0 at once.",
            "Choose another --gpu-type.",
        ),
        (
            fact(
                "reserved_gpu_hours_over_quota",
                gpu_hours=32.0,
                gpu_type="t4",
                used=380.25,
                limit=400.0,
                most_hours=4.9375,
            ),
            "32.0 GPU-hours of t4 are more than you have left: 380.2 of your 400 are reserved now.",
            "Ask for 4.9 hours at most with --hours.",
        ),
        (
            fact(
                "reserved_gpu_hours_over_quota",
                gpu_hours=32,
                gpu_type="t4",
                used=400,
                limit=400,
                most_hours=None,
            ),
            "32.0 GPU-hours of t4 are more than you have left: 400.0 of your 400 are reserved now.",
            "Cancel one that you do not need any more, or wait until one ends: gpu-dev list",
        ),
        (
            fact(
                "gpu_hours_over_quota",
                gpu_hours=8,
                gpu_type="t4",
                used=200,
                limit=200,
                days=3.5,
                most_hours=None,
            ),
            (
                "8.0 GPU-hours of t4 are more than you have left: 200.0 of your 200 in 3.5 days are used or "
                "reserved."
            ),
            "Wait until older ones are over the period.",
        ),
        (
            fact("bad_text", field="name", longest=200, has_lines=False),
            "name must be at most 200 printable characters.",
            "Control characters and marks that change the direction of text are refused.",
        ),
        (
            fact("field_not_found", field="job_id", longest=200, has_lines=True),
            "The job_id was not found: must be at most 200 printable characters, line breaks and tabs.",
            "",
        ),
        (
            fact("fields_not_supported", names=["jupyter_enabled"]),
            "Not supported yet: jupyter_enabled.",
            "Leave it out.",
        ),
        (fact("fields_not_supported", names=["a", "b"]), "Not supported yet: a, b.", "Leave them out."),
    ],
)
def test_request_is_refused(told: Fact, sentence: str, hint: str) -> None:
    assert (say(told), advise(told)) == (sentence, hint)


@pytest.mark.parametrize(
    "told, sentence, hint",
    [
        (
            fact("ambiguous_reservation", text=HARD, count=2, candidates=[[ID, "one"], [OTHER, HARD]]),
            '"a {b}" fits 2 reservations: 7f3a91c2 (one), 7f3aa000 (a {b}).',
            "Type more characters of the id.",
        ),
        (
            fact("extension_promised_to_others", reservation=ID, left=timedelta(hours=1.5), until=NOON),
            (
                "Reservation 7f3a91c2 can be extended by 1 hour 30 minutes at most: its GPUs are promised to "
                "somebody from 2030-01-07 12:00 UTC on."
            ),
            "For example: gpu-dev edit 7f3a91c2 --extend 1.5",
        ),
        (
            fact("extension_promised_to_others", reservation=ID, left=timedelta(seconds=59), until=NOON),
            (
                "Reservation 7f3a91c2 can be extended by less than a minute at most: its GPUs are promised "
                "to somebody from 2030-01-07 12:00 UTC on."
            ),
            "Reserve again, and see before when that would start: gpu-dev reserve --dry-run",
        ),
        (
            fact("extension_on_leaving_nodes", reservation=ID, nodes=["gpu-1"], reasons=[]),
            "Node gpu-1 is being taken out of service. Reservation 7f3a91c2 cannot be extended.",
            "Reserve again, on another node: gpu-dev reserve",
        ),
        (
            fact("extension_on_leaving_nodes", reservation=ID, nodes=["gpu-1", "gpu-2"], reasons=["a", HARD]),
            (
                "Nodes gpu-1, gpu-2 are being taken out of service: a; a {b}. "
                "Reservation 7f3a91c2 cannot be extended."
            ),
            "Reserve again, on another node: gpu-dev reserve",
        ),
        (
            fact("disk_is_busy", name="scratch", state="snapshotting", reservation=ID),
            'Disk "scratch" is snapshotting of reservation 7f3a91c2; that takes a moment.',
            "Try again when it is free: gpu-dev disk show scratch",
        ),
        (
            fact("disk_is_busy", name="scratch", state="snapshotting", reservation=None),
            'Disk "scratch" is snapshotting; that takes a moment.',
            "Try again when it is free: gpu-dev disk show scratch",
        ),
        (
            fact("wanted_disk_attached", name="scratch", reservation=ID, free=["a", "b"]),
            'Disk "scratch" is attached to reservation 7f3a91c2.',
            (
                "Choose one of your free disks (a, b), a new one (--disk NEW_NAME) or none (--disk none), "
                "or release it with: gpu-dev cancel 7f3a91c2"
            ),
        ),
        (
            fact("wanted_disk_attached", name="scratch", reservation=None, free=[]),
            'Disk "scratch" is attached to reservation another of yours.',
            (
                "Choose a new one (--disk NEW_NAME) or none (--disk none), "
                "or release it with: gpu-dev cancel another of yours"
            ),
        ),
        (fact("node_not_found", name="x", nodes=["a", "b"]), 'There is no node "x".', "Nodes: a, b."),
        (fact("node_not_found", name=None, nodes=[]), "There is no node.", "Nodes: none yet."),
        (
            fact("notification_host_not_allowed", host="h", allowed=["a", "b"]),
            'Notifications may not be sent to "h".',
            "Hosts that the operator allows: a, b.",
        ),
        (
            fact("notification_host_not_allowed", host="h", allowed=[]),
            'Notifications may not be sent to "h".',
            "Hosts that the operator allows: none.",
        ),
        (
            fact("wanted_sandbox_does_not_work", remedy=fact("words", words=HARD), lines=None),
            "GPU_DEV_ISOLATION asks for bubblewrap, which does not work here.",
            "a {b}",
        ),
        (
            fact(
                "wanted_sandbox_does_not_work",
                remedy=fact("words", words="Do this:"),
                lines=fact("words", words="x\n"),
            ),
            "GPU_DEV_ISOLATION asks for bubblewrap, which does not work here.",
            "Do this:\nx",
        ),
    ],
)
def test_action_is_refused(told: Fact, sentence: str, hint: str) -> None:
    assert (say(told), advise(told)) == (sentence, hint)
