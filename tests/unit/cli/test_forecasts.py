"""`reserve --dry-run`, `reserve --at`, `reserve --node-label` and `queue --accuracy`."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.fake_api import FakeApi, Reply
from tests.unit.cli.conftest import GpuDev, plan_reservation

RESERVE = ("reserve", "-t", "h100")
LATER = (datetime.now(UTC) + timedelta(days=3)).replace(minute=20, second=0, microsecond=0)

WAITS = {
    "starts_now": False,
    "estimated_start_at": LATER.isoformat(),
    "estimated_wait_minutes": 4320,
    "likely_start": [(LATER - timedelta(hours=2)).isoformat(), (LATER - timedelta(hours=1)).isoformat()],
    "reason": "waiting_for_capacity",
    "current_detailed_status": "8 h100 GPUs on one node: h100-0 has room then, when 7f3a91c2 ends.",
    "nearby": [
        {
            "gpu_type": "h100",
            "gpu_count": 4,
            "duration_hours": 2.0,
            "starts_now": True,
            "estimated_start_at": LATER.isoformat(),
        }
    ],
}

ACCURACY = {
    "accuracy": {
        "h100": {
            "started": 120,
            "promises_kept": 1.0,
            "promise_error_minutes": 90.0,
            "likely_error_minutes": 30.0,
            "bias": 0.97,
            "coverage": 0.81,
        },
        "t4": {"started": 2, "promises_kept": 0.5, "promise_error_minutes": 5.0},
    },
    "timestamp": LATER.isoformat(),
}


def previewed(api: FakeApi) -> dict[str, object]:
    body: dict[str, object] = api.seen("POST", "/v1/jobs/preview")[-1].json
    return body


class TestDryRun:
    def test_it_says_when_and_why_and_what_would_be_sooner_and_reserves_nothing(
        self, gpu_dev: GpuDev, api: FakeApi
    ) -> None:
        api.on("POST", "/v1/jobs/preview", Reply(body=WAITS))
        result = gpu_dev(*RESERVE, "-g", "8", "-H", "2", "--dry-run", "-y")
        first, likely, why, sooner, nearby = result.out.splitlines()
        assert result.code == 0
        assert first.startswith("It would start at ")
        assert first.endswith(" at the latest.")
        assert likely.startswith("Likely between ")
        assert "7f3a91c2" in why
        assert (sooner, nearby) == ("Sooner:", "  4 x h100 for 2 h: now")
        assert (previewed(api)["gpu_count"], previewed(api)["duration_hours"]) == (8, 2.0)
        assert api.seen("POST", "/v1/jobs/submit") == []

    def test_what_starts_now_is_said_in_one_line(self, gpu_dev: GpuDev, api: FakeApi) -> None:
        api.on("POST", "/v1/jobs/preview", Reply(body={"starts_now": True}))
        assert gpu_dev(*RESERVE, "--dry-run", "-y").out == "It would start now.\n"

    def test_programs_get_the_answer_as_it_came(self, gpu_dev: GpuDev, api: FakeApi) -> None:
        api.on("POST", "/v1/jobs/preview", Reply(body=WAITS))
        shown = json.loads(gpu_dev(*RESERVE, "--dry-run", "-y", "--json").out)
        assert (shown["starts_now"], shown["nearby"][0]["gpu_count"]) == (False, 4)

    def test_a_quota_is_told_with_its_own_exit_code(self, gpu_dev: GpuDev, api: FakeApi) -> None:
        refused = {"detail": "9 h100 GPUs are more than your quota of 8 at once.", "code": "quota_exceeded"}
        api.on("POST", "/v1/jobs/preview", Reply(body={"starts_now": True}))
        api.on("POST", "/v1/jobs/submit", Reply(409, body=refused))
        result = gpu_dev(*RESERVE, "-y")
        assert (result.code, "more than your quota of 8" in result.err) == (5, True)


class TestBooking:
    def test_a_time_is_sent_with_its_offset(self, gpu_dev: GpuDev, api: FakeApi) -> None:
        plan_reservation(api, "submitted", "active")
        gpu_dev(*RESERVE, "-y", "--no-wait", "--at", "2030-01-07T14:00Z")
        sent = api.seen("POST", "/v1/jobs/submit")[-1].json["start_at"]
        assert datetime.fromisoformat(sent) == datetime(2030, 1, 7, 14, tzinfo=UTC)

    @pytest.mark.parametrize("words", ["whenever", "25:00", "in a while"])
    def test_what_is_no_time_is_refused_with_what_is_one(
        self, gpu_dev: GpuDev, api: FakeApi, words: str
    ) -> None:
        result = gpu_dev(*RESERVE, "-y", "--at", words)
        assert result.code == 2
        assert "tomorrow 14:00" in result.err
        assert api.seen("POST", "/v1/jobs/submit") == []

    def test_the_nearest_time_is_shown_where_there_is_no_room_then(
        self, gpu_dev: GpuDev, api: FakeApi
    ) -> None:
        hint = "The nearest time after that is: --at 2030-01-07T16:00Z"
        refused = {"detail": "1 h100 GPU cannot start then.", "code": "no_room_then", "hint": hint}
        api.on("POST", "/v1/jobs/preview", Reply(body={"starts_now": True}))
        api.on("POST", "/v1/jobs/submit", Reply(409, body=refused))
        result = gpu_dev(*RESERVE, "-y", "--at", "2030-01-07T14:00Z")
        assert (result.code, hint in result.err) == (1, True)


def test_node_labels_are_sent(gpu_dev: GpuDev, api: FakeApi) -> None:
    plan_reservation(api, "submitted", "active")
    gpu_dev(*RESERVE, "-y", "--no-wait", "-l", "nsight=true", "--node-label", "zone=a")
    assert api.seen("POST", "/v1/jobs/submit")[-1].json["node_labels"] == {"nsight": "true", "zone": "a"}


class TestAccuracy:
    def test_it_is_a_table_by_type(self, gpu_dev: GpuDev, api: FakeApi) -> None:
        api.on("GET", "/v1/queue/accuracy", Reply(body=ACCURACY))
        header, h100, t4 = gpu_dev("queue", "--accuracy").out.splitlines()
        assert header.split()[:3] == ["TYPE", "STARTED", "KEPT"]
        assert h100.split() == ["h100", "120", "100%", "1", "h", "30", "min", "30", "min", "0.97", "81%"]
        assert t4.split()[-3:] == ["-", "-", "-"]

    def test_programs_get_all_of_it(self, gpu_dev: GpuDev, api: FakeApi) -> None:
        api.on("GET", "/v1/queue/accuracy", Reply(body=ACCURACY))
        shown = json.loads(gpu_dev("queue", "--accuracy", "--json").out)
        assert shown["accuracy"]["h100"]["coverage"] == 0.81
