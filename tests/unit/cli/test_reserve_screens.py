"""What `gpu-dev reserve` says to a person who has typed everything."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager

from tests.support.fake_api import FakeApi, Reply
from tests.support.terminal import Terminal, open_terminal
from tests.unit.cli.conftest import plan_reservation

TAKEN = {
    "disk_name": "default",
    "user_id": "ada",
    "size_gb": 100,
    "created_at": "2026-01-05T09:00:00Z",
    "in_use": True,
    "is_backing_up": False,
    "is_deleted": False,
    "snapshot_count": 0,
    "state": "in_use",
}


def reserve(*arguments: str) -> AbstractContextManager[Terminal]:
    command = [sys.executable, "-m", "gpudev.cli.main", "reserve", "-t", "h100", "-H", "1", *arguments]
    return open_terminal(command, {**os.environ, "TERM": "xterm-256color"}, 60)


def test_without_waiting_a_person_is_told_what_to_type_next(api: FakeApi) -> None:
    plan_reservation(api, "submitted")
    with reserve("-g", "1", "--no-wait", "--no-persist") as terminal:
        assert terminal.wait_for_end() == 0
        assert terminal.picture().rstrip().split("\n")[-1] == "See it with: gpu-dev show 7f3a91c2"


def test_what_cannot_be_had_is_refused_before_the_disk_is_asked_for(api: FakeApi) -> None:
    api.on("GET", "/v1/disks", Reply(body={"disks": [TAKEN], "total": 1}))
    refusal = {"detail": "9 GPUs are more than an h100 node has, which is eight of them.", "code": "x"}
    api.on("POST", "/v1/jobs/preview", Reply(400, {**refusal, "hint": "Ask for 8."}))
    with reserve("-g", "9") as terminal:
        assert terminal.wait_for_end() == 2
        assert terminal.picture().rstrip().split("\n") == [
            "Error: 9 GPUs are more than an h100 node has, which is eight",
            "       of them.",
            "Hint: Ask for 8.",
        ]
