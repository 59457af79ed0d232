"""`gpu-dev disk`, at a server that answers as it is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.fake_api import FakeApi, Reply
from tests.unit.cli.conftest import GpuDev

AT = "2026-03-01T12:00:00Z"
DISK: dict[str, Any] = {
    "disk_name": "work",
    "user_id": "ada",
    "size_gb": 100,
    "created_at": AT,
    "in_use": False,
    "is_backing_up": False,
    "is_deleted": False,
    "snapshot_count": 2,
    "state": "available",
}
ASKED = {"operation_id": "op-1", "disk_name": "work", "message": "It is asked for.", "requested_at": AT}
OPERATION = {
    "operation_id": "op-1",
    "disk_name": "work",
    "is_deleted": False,
    "created_at": AT,
    "last_updated": AT,
}


def plan(api: FakeApi, action: str, *statuses: str, error: str = "") -> None:
    """An action that takes these steps."""
    details = [
        {**OPERATION, "action": action, "status": status, "completed": status != "requested"}
        | ({"error": error} if error else {})
        for status in statuses
    ]
    api.on("GET", "/v1/disks/work/operations/op-1", *(Reply(body=detail) for detail in details))
    api.on("GET", "/v1/disks/work", Reply(body=DISK))


def test_disks_are_listed(api: FakeApi, gpu_dev: GpuDev) -> None:
    api.on("GET", "/v1/disks", Reply(body={"disks": [DISK], "total": 1}))
    seen = gpu_dev("disk", "list")
    assert seen.out.splitlines()[1].split()[:4] == ["work", "100", "GB", "free"]
    assert gpu_dev("disk", "list", "-o", "name").out == "work\n"
    assert json.loads(gpu_dev("disk", "list", "--json").out)["total"] == 1
    gpu_dev("disk", "list", "--deleted")
    assert api.requests[-1].path.endswith("deleted=true")


@pytest.mark.parametrize(
    "words, route, body",
    [
        ("create work --size 20", "POST /v1/disks", {"disk_name": "work", "size_gb": 20}),
        ("clone other work", "POST /v1/disks/other/clone", {"new_name": "work"}),
        ("grow work 200", "POST /v1/disks/work/grow", {"size_gb": 200}),
        ("restore old --as work", "POST /v1/disks/old/restore", {"new_name": "work"}),
        ("delete work --yes", "DELETE /v1/disks/work", None),
    ],
)
def test_an_action_is_asked_for_and_waited_for(
    api: FakeApi, gpu_dev: GpuDev, words: str, route: str, body: Any
) -> None:
    action, method, path = words.split(maxsplit=1)[0], *route.split()
    plan(api, action, "requested", "done")
    api.on(method, path, Reply(body={**ASKED, "action": action}))
    seen = gpu_dev("disk", *words.split())
    assert seen.code == 0, seen.err
    assert "It is asked for." in seen.err
    assert 'Disk "work": free' in seen.err
    assert "work" in seen.out
    [request] = api.seen(method, path)
    assert (json.loads(request.body) if request.body else None) == body


def test_the_disk_is_read_again_only_when_it_has_changed(api: FakeApi, gpu_dev: GpuDev) -> None:
    details = [
        {
            **OPERATION,
            "action": "grow",
            "status": status,
            "completed": status == "done",
            "disk_version": version,
        }
        for status, version in [*[("requested", 4)] * 5, *[("requested", 5)] * 2, ("done", 6)]
    ]
    api.on("GET", "/v1/disks/work/operations/op-1", *(Reply(body=detail) for detail in details))
    api.on("GET", "/v1/disks/work", Reply(body={**DISK, "state": "attaching"}), Reply(body=DISK))
    api.on("POST", "/v1/disks/work/grow", Reply(body={**ASKED, "action": "grow"}))
    seen = gpu_dev("disk", "grow", "work", "200")
    assert (seen.code, len(api.seen("GET", "/v1/disks/work/operations/op-1"))) == (0, 8)
    assert len(api.seen("GET", "/v1/disks/work")) == 3, "at versions 4 and 5, and at the end"
    assert 'Disk "work": being attached\nDisk "work": free\n' in seen.err


def test_what_failed_is_told(api: FakeApi, gpu_dev: GpuDev) -> None:
    plan(api, "create", "failed", error="No room.")
    api.on("POST", "/v1/disks", Reply(body={**ASKED, "action": "create"}))
    seen = gpu_dev("disk", "create", "work")
    assert (seen.code, seen.err.splitlines()[-1]) == (1, "Error: No room.")


def test_files_are_listed(api: FakeApi, gpu_dev: GpuDev) -> None:
    answer = {"disk_name": "work", "content": "12 notes.txt", "snapshot_date": AT}
    api.on("GET", "/v1/disks/work/content", Reply(body=answer))
    seen = gpu_dev("disk", "list-content", "work")
    assert seen.out == "12 notes.txt\n"
    assert seen.err.startswith("Files on the snapshot of ")


def test_why_there_are_no_files_is_told(api: FakeApi, gpu_dev: GpuDev) -> None:
    answer = {"disk_name": "work", "content": "", "message": "No snapshot yet."}
    api.on("GET", "/v1/disks/work/content", Reply(body=answer))
    seen = gpu_dev("disk", "list-content", "work")
    assert (seen.out, seen.err) == ("", "No snapshot yet.\n")


def test_a_rename_says_what_is_still_to_be_done(api: FakeApi, gpu_dev: GpuDev) -> None:
    answer = {
        "message": "Done.",
        "old_name": "a",
        "new_name": "b",
        "snapshots_updated": 0,
        "errors": ["Tags."],
    }
    api.on("POST", "/v1/disks/a/rename", Reply(body=answer))
    seen = gpu_dev("disk", "rename", "a", "b")
    assert (seen.out, seen.err) == ("Done.\n", "Warning: Tags.\n")


def test_drift_is_an_exit_code(api: FakeApi, gpu_dev: GpuDev) -> None:
    figures = dict.fromkeys(
        ("aws_volumes", "db_records", "synced", "orphaned_db_active", "orphaned_db_deleted", "errors"), 1
    )
    clean = {**figures, "changes": [], "remarks": [], "problems": []}
    api.on("GET", "/v1/admin/disks/check", Reply(body=clean), Reply(body={**clean, "remarks": ["Look."]}))
    first, second = gpu_dev("admin", "disks", "check"), gpu_dev("admin", "disks", "check")
    assert (first.code, first.out) == (0, "No differences: 1 disks, 1 volumes, 1 of them matched.\n")
    assert (second.code, second.out.splitlines()[0]) == (1, "Look.")
