"""A stopped reservation, used as a person would, on any kind of cluster."""

from __future__ import annotations

from tests.support.machine import Machine, wait_for


def check_that_a_stop_keeps_the_disk_and_the_time(machine: Machine, gpu_type: str, gpus: int) -> None:
    """Stopped with `gpus`, started with one fewer."""
    first = machine.reserve(
        "-t", gpu_type, "-g", str(gpus), "--for", "2h", "--name", "train", "--disk", "train"
    )
    machine.ssh(first, "echo kept > ~/kept; echo lost > /workspace/lost || true")
    stopped = machine.ask("stop", "train", "--yes")
    assert (stopped["status"], stopped["reason"]) == ("stopped", "stopped_by_user")
    assert 1.5 < stopped["duration_hours"] < 2
    assert "expires_at" not in stopped
    wait_for(lambda: _is_free(machine), "the disk")

    refused = machine.run("extend", "train", "1", check=False)
    assert refused.returncode == 1
    assert "only an active one can be extended" in refused.stderr

    started = machine.ask("start", "train", "-g", str(gpus - 1))
    assert (started["job_id"], started["status"], started["gpu_count"]) == (first, "active", gpus - 1)
    assert started["disk_name"] == "train"
    assert machine.ssh("train", "cat ~/kept; cat /workspace/lost 2>/dev/null").stdout == "kept\n"
    machine.run("cancel", "train", "--yes")
    assert machine.show(first)["status"] == "cancelled"


def _is_free(machine: Machine) -> bool:
    [disk] = [disk for disk in machine.ask("disk", "list")["disks"] if disk["disk_name"] == "train"]
    return disk["state"] == "available" and disk["snapshot_count"] >= 1
